"""The change of one file's keys, and the rows that the ledger must have of it. Python 2.7 and 3; reads and writes nothing."""

import hashlib
import json
import re

from . import key_formats
from .hadoop_files import DEFAULTS, LISTS, Unusable, words

DIFFERS = (
    "%s must have %s for %s, but the site has %s there, which this project did not set. "
    "Set it to that yourself, or remove it, so that this project may."
)


class Differs(ValueError):
    """A value of the site's own is another; the text is the message."""


class Change(object):
    """settings: what the keys must be, other recorded keys are undone; None: the keys get the bytes with which the services ran last."""

    def __init__(self, path, data, rows, settings, replaces=False):
        self.path, self.before, self.data, self.replaces = path, data, data, replaces
        self.format = key_formats.of(path)
        self.rows = dict((row["key"], dict(row)) for row in rows if row["path"] == path and row["kind"] == "key")
        self.file = next((dict(row) for row in rows if row["path"] == path and row["kind"] == "file"), None)
        try:
            for key in sorted(set(self.rows) - set(settings or {})):
                (self.undo if settings is not None else self.go_back)(key, self.rows[key])
            for key in sorted(settings or {}):
                self.set(key, settings[key])
            self.finish()
        except Unusable as error:
            raise Unusable("%s must %s" % (path, error))

    def is_live(self):
        return any(not row.get("undone") for row in self.rows.values())

    def value(self, key):
        return None if self.data is None else self.format.values(self.data).get(key)

    def raw(self, key):
        return None if self.data is None else self.format.raw(self.data, key)

    def put(self, key, raw):
        if self.data is None and raw is None:
            return
        if self.data is None and self.format.empty is None:
            raise Unusable("exist, but does not")
        self.data = self.format.with_raw(self.format.empty if self.data is None else self.data, key, raw)

    def is_own(self, key, row):
        """Whether the key has what this project gave it, also if a run was killed before it wrote the file."""
        return self.format.same(self.value(key), row["now"]) or ("ran" in row and self.raw(key) == row["ran"])

    def set(self, key, value):
        current, row, listing = self.value(key), self.rows.get(key), key in LISTS
        new_value = value
        if listing:
            new_value = current if value in words(current) else ",".join(words(current) + [value])
        is_accepted = listing or self.replaces or current in (None, "", DEFAULTS.get(key))
        has_value = current is not None and self.format.same(current, new_value)
        if not (is_accepted or has_value or (row and self.is_own(key, row))):
            raise Differs(DIFFERS % (self.path, shown(value), key, shown(current)))
        if row is None and has_value:
            return  # the site has it
        raw = self.raw(key)
        row = row or {"kind": "key", "path": self.path, "key": key, "before": raw}
        row.setdefault("ran", raw)
        row.pop("undone", None)
        self.rows[key] = dict(row, now=new_value, wanted=value, list=listing)
        if not has_value:
            self.put(key, self.format.written(key, new_value))

    def undo(self, key, row):
        """What was there before; what somebody changed since stays, without the word that was added to a list."""
        current, is_own, row["undone"] = self.value(key), self.is_own(key, row), True
        if current is None:
            return
        if is_own:
            row.setdefault("ran", self.raw(key))
            self.put(key, row["before"])
        elif row["list"] and row["wanted"] in words(current):
            remainder = ",".join(word for word in words(current) if word != row["wanted"])
            self.put(key, self.format.written(key, remainder) if remainder else None)

    def go_back(self, key, row):
        if "ran" not in row or not (self.is_own(key, row) or self.raw(key) == row["before"]):
            return
        self.put(key, row["ran"])
        row["undone"] = row["ran"] == row["before"]
        row["now"] = row["now"] if row["undone"] else self.value(key)

    def finish(self):
        """A file that was created, and one whose text is recorded, are as before when nothing of this project is in them."""
        if self.file is None and self.is_live() and (self.before is None or self.format.is_copied):
            text = None if self.before is None else self.before.decode("utf-8")
            self.file = {"kind": "file", "path": self.path, "before": text}
        if self.file is None or self.data is None:
            return
        if self.is_live():
            self.describe()
        elif self.before is not None and sha256(self.before) == self.file.get("sha256"):
            self.data = None if self.file["before"] is None else self.file["before"].encode("utf-8")
        elif self.file["before"] is None and not self.format.values(self.data):
            self.data = None

    def describe(self):
        """The digest tells whether only this project changed the file, so that its text from before may come back."""
        is_as_before = self.before is None or self.before.decode("utf-8") == self.file["before"]
        if is_as_before or sha256(self.before) == self.file.get("sha256"):
            self.file["sha256"] = sha256(self.data)

    def entries(self):
        """The rows; the key's own stay until the services run without it."""
        return ([self.file] if self.file else []) + [self.rows[key] for key in sorted(self.rows)]

    def diff(self):
        """The keys that change, without user and password of an address, and nothing else of the file, which may hold secrets."""
        sides = []
        for data in (self.before, self.data):
            values = {} if data is None else self.format.values(data)
            sides.append("".join("%s=%s\n" % (key, shown(values[key])) for key in sorted(self.rows) if key in values))
        return {"before_header": self.path, "after_header": self.path, "before": sides[0], "after": sides[1]}


def settled(rows):
    """The rows when the services run with the files: without keys that were undone, and files that have none."""
    kept = [dict(row) for row in rows if row["kind"] == "key" and not row.get("undone")]
    for row in kept:
        row.pop("ran", None)
    paths = set(row["path"] for row in kept)
    others = [row for row in rows if row["kind"] == "file" and row["path"] in paths]
    restarts = [dict(row, pending=False) for row in rows if row["kind"] == "restart" and kept]
    return restarts + others + kept


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def shown(value):
    text = value if hasattr(value, "encode") else json.dumps(value)
    return re.sub(r"//\S*@", "//***@", text)
