"""What this project changed on a host: STATE/<component>.json, with rows in the order of the changes. Python 2.7 and 3, standard library only.

A row is written before its change, so a killed run leaves at most a row without a change:
  {"kind": "key", "path", "key", "now", "before", "list", "wanted"}   a key of a file: its value, and its bytes before; `ran`: its bytes while a
                                                                     restart is pending; `undone`: until then, a key that has its bytes from before
  {"kind": "file", "path", "before", "sha256"}                       a file that was created (before: null), or its text before
  {"kind": "restart", "services", "pending"}                         what runs with these keys
  {"kind": "own", "path", "link"}                                    a file, unit or directory that only this component has; a link: its target
  {"kind": "account" or "place", "path", "existed"}                  an account; a directory that lists by itself what this component put there
The receipt of the component (module receipt) is in the same file.
"""

import json
import os

from . import atomic_files, earlier_records

ROOT = "/opt/deeplearning"
OWN = ("own", "account", "place")


class Unreadable(ValueError):
    """A ledger that cannot be read is refused: what was there before is in no other place."""


def read(path):
    """The content; an empty one if there is no ledger."""
    try:
        with open(path, "rb") as handle:
            content = json.loads(handle.read().decode("utf-8"))
    except (IOError, OSError):
        content = {}
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise Unreadable("%s must be the JSON object that this project wrote; restore it from a backup" % path)
    return content


class Ledger(object):
    """rows: those of own files, or those of keys; `others` are kept as they are."""

    def __init__(self, component, root=ROOT, own=False):
        self.component, self.root = component, root
        self.path = os.path.join(root, "state", component + ".json")
        self.content = read(self.path)
        rows = self.content.get("rows") or []
        own_rows = [row for row in rows if row["kind"] in OWN] or earlier_records.own_rows(component, root)
        key_rows = [row for row in rows if row["kind"] not in OWN] or earlier_records.rows(component, root, read)
        self.rows, self.others = (own_rows, key_rows) if own else (key_rows, own_rows)

    def write(self, rows):
        rows = self.others + rows
        content = dict(self.content, component=self.component, rows=rows)
        if not rows:
            del content["rows"]
        atomic_files.write_record(self.path, content if rows or "digest" in content else None)
        earlier_records.remove(self.component, self.root)


def rows(component, root=ROOT, kind="key"):
    """The rows of one kind, for those who only read; a torn ledger has none."""
    try:
        return [row for row in Ledger(component, root, own=kind in OWN).rows if row["kind"] == kind]
    except (ValueError, TypeError, KeyError, AttributeError):
        return []


def pending(component, root):
    """Whether services run with other keys than their files have."""
    return any(row["pending"] for row in rows(component, root, "restart"))


def services(component, root):
    return [name for row in rows(component, root, "restart") for name in row["services"]]
