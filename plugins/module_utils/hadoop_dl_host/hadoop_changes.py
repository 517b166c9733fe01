# -*- coding: utf-8 -*-
"""The change of one of Hadoop's files, and what the record must keep of it. Python 2.7 and 3; reads and writes nothing."""

from __future__ import absolute_import, division, print_function

from . import hadoop_files

DIFFERS = (
    "%s must have %s for %s, but the site has %s there, which this project did not set. "
    "Set it to that yourself, or remove it, so that this project may."
)


class Differs(ValueError):
    """A value of the site's own is another; the text is the message."""


class Change(object):
    """entry: the file's part of the record: whether the file was created, and of each setting the text before it, what it was asked to be and became."""

    def __init__(self, path, data, entry, settings):
        self.path, self.before, self.known = path, data, entry.get("settings", {})
        self.entry = {"created": entry.get("created", data is None), "settings": {}}
        self.data = data
        if data is None and settings:
            if hadoop_files.is_cfg(path):
                raise hadoop_files.Unusable("there is no %s" % path)
            self.data = hadoop_files.EMPTY
        try:
            self.make(settings)
        except hadoop_files.Unusable as error:
            raise hadoop_files.Unusable("%s must %s" % (path, error))
        self.after = self.data

    def make(self, settings):
        for key in sorted(set(self.known) - set(settings)):
            self.undo(key, self.known[key])
        for key in sorted(settings):
            self.set(key, settings[key])
        empty = self.data is not None and not hadoop_files.is_cfg(self.path) and not self.values()
        if self.entry["created"] and not settings and empty:
            self.data = None

    def values(self):
        return {} if self.data is None else hadoop_files.values(self.path, self.data)

    def set(self, key, value):
        current, record = self.values().get(key, ""), self.known.get(key)
        words = hadoop_files.words(current)
        new_value, listing = value, key in hadoop_files.LISTS
        if listing:
            new_value = current if value in words else ",".join(words + [value])
        accepted = (new_value, record and record["ours"], hadoop_files.DEFAULTS.get(key))
        if current and not listing and current not in accepted:
            raise Differs(DIFFERS % (self.path, value, key, current))
        if record is None and current == new_value:
            return  # the site has it
        original = record["before"] if record else hadoop_files.raw_of(self.path, self.data, key)
        self.entry["settings"][key] = {"before": original, "wanted": value, "ours": new_value, "list": listing}
        if current != new_value:
            self.put(key, hadoop_files.written(self.path, key, new_value))

    def undo(self, key, setting):
        """What was there before; what somebody changed since stays, without the word that was added to a list."""
        current = self.values().get(key)
        if current is None:
            return
        words = hadoop_files.words(current)
        if current == setting["ours"]:
            self.put(key, setting["before"])
        elif setting["list"] and setting["wanted"] in words:
            remainder = ",".join(word for word in words if word != setting["wanted"])
            self.put(key, hadoop_files.written(self.path, key, remainder) if remainder else None)

    def put(self, key, raw):
        self.data = hadoop_files.with_raw(self.path, self.data, key, raw)

    def both(self):
        """The entry while the file changes: what is to be undone is still known."""
        return {"created": self.entry["created"], "settings": dict(self.known, **self.entry["settings"])}

    def diff(self):
        """The settings that change, and nothing else of the file, which may hold secrets."""
        names = sorted(set(self.known) | set(self.entry["settings"]))
        sides = []
        for data in (self.before, self.after):
            values = {} if data is None else hadoop_files.values(self.path, data)
            sides.append("".join("%s=%s\n" % (name, values[name]) for name in names if name in values))
        return {"before_header": self.path, "after_header": self.path, "before": sides[0], "after": sides[1]}
