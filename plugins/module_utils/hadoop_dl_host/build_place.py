"""What builds of TensorFlow create on a host: the record of it, and its removal. Python 2.7 and 3, standard library only.

The record is {"roots": {path: existed before}, "users": {name: existed before}}, of everything that the inventory ever named here.
"""

from __future__ import absolute_import, division, print_function

import os
import pwd

from . import processes
from . import tensorflow_builder as builder
from .host_lock import HostLock

# Below the root: of the role's tasks, of the builder, and the lock, which goes last.
OWN = (
    "home",
    "sources",
    "archives",
    "source",
    "builds",
    "bazel",
    "sessions",
    "check_wheel.py",
    "running.json",
    ".draft-running.json",
    "published",
)
PEOPLE = 1000  # uids below it are the system's
SECONDS = 60


class Refused(Exception):
    """What is required and was found; nothing was changed."""


def account(name):
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def is_ours(account, root):
    """Whether this role created the account: its home is below the root."""
    return account.pw_uid != 0 and account.pw_dir == os.path.join(root, "home")


def recorded(before, root, user):
    """The record with this directory and this account. What an earlier release made here has no record, but its account has its home here."""
    record = {"roots": dict(before.get("roots") or {}), "users": dict(before.get("users") or {})}
    entry = account(user)
    is_own_account = entry is not None and is_ours(entry, root)
    if user not in record["users"]:
        if entry is not None and entry.pw_uid < PEOPLE and not is_own_account:
            raise Refused(
                "tensorflow_build_user must be an account that this role creates, or one of the site (uid %d or above), but %s is there with uid %d. "
                "Nothing was changed. Name another one." % (PEOPLE, user, entry.pw_uid)
            )
        record["users"][user] = entry is not None and not is_own_account
    if root not in record["roots"]:
        contents = sorted(set(os.listdir(root)) - set(["lost+found"])) if os.path.isdir(root) else []
        if (contents and not is_own_account) or (os.path.lexists(root) and not os.path.isdir(root)):
            raise Refused(
                "tensorflow_build_root must be a new or empty directory, because builds write and remove there, but %s has %s. Nothing was changed. Name "
                "another one." % (root, ", ".join(contents[:5]) or "another kind of file")
            )
        record["roots"][root] = os.path.isdir(root) and not is_own_account
    return record


def present(record):
    """Paths and accounts of the record that are there: (roots with what is ours below each, accounts)."""
    roots = sorted(record.get("roots") or {})
    paths = [
        (root, [path for path in [os.path.join(root, name) for name in OWN] if os.path.lexists(path)]) for root in roots
    ]
    created_names = [name for name, existed in sorted((record.get("users") or {}).items()) if not existed]
    accounts = [(name, account(name)) for name in created_names]
    users = [name for name, entry in accounts if entry and any(is_ours(entry, root) for root in roots)]
    return [(root, below) for root, below in paths if os.path.isdir(root)], users


def remove(record, dry):
    """Remove what the record names: accounts, unless one has processes, then entries. Returns what was removed."""
    roots, users = present(record)
    removed = users + sum((below for _, below in roots), [])
    if dry:
        return removed
    locks = []
    try:
        for root, _ in roots:
            locks.append(HostLock("removing builds", 0, root).__enter__())  # a build that runs has it
        for name in users:
            answer = processes.run(["/usr/sbin/userdel", name], SECONDS)
            if answer.status != 0:
                raise Refused(
                    "The account %s of the builds must be removed, but userdel answers: %s Nothing else was removed. End what it runs, and run again."
                    % (name, (answer.error or answer.output).strip())
                )
        for _, below in roots:
            for path in below:
                builder.remove(path)
    finally:
        for lock in locks:
            release(lock, record["roots"].get(lock.root))
    return removed


def release(lock, existed):
    """Remove the lock's file, and the directory if it did not exist before and has nothing else in it."""
    if os.listdir(lock.root) == [".lock"]:
        if existed:
            os.unlink(lock.path)
        else:
            lock.remove_if_alone()
    lock.__exit__()
