"""Files that have their name only when they are complete, and what of them to compare. Python 2.7 and 3, standard library only."""

import contextlib
import glob
import hashlib
import json
import os
import pwd
import re
import stat

CHUNK = 1 << 20


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        for chunk in iter(lambda: handle.read(CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


def write_whole(path, data, draft=None, mode=0o644, owner=None):
    """Write bytes so that the name never shows a part of them, and so that they last. One run at a time writes a path.

    draft: where they are written first, on the same file system; one of a killed run is replaced. mode and owner (user, group): the draft
    has them before it gets the name, so that no moment shows a secret.
    """
    draft = draft or os.path.join(os.path.dirname(path), ".draft-" + os.path.basename(path))
    if os.path.lexists(draft):
        os.unlink(draft)
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(data)
            stream.flush()
            if owner is not None:
                give(stream.fileno(), *owner)
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        os.rename(draft, path)
    except BaseException:
        if os.path.lexists(draft):  # a full disk has no name for it
            os.unlink(draft)
        raise
    sync_path(os.path.dirname(path))


def give(descriptor, uid, gid):
    """Give a file to this owner; an account other than root keeps it, and gives it the group if it may."""
    try:
        os.fchown(descriptor, uid if os.geteuid() == 0 else -1, gid)
    except (IOError, OSError):
        if os.geteuid() == 0:
            raise


def json_text(value):
    """The value as JSON in the form of every record of this project."""
    return json.dumps(value, indent=1, sort_keys=True) + "\n"


def write_json(path, value, mode=0o644):
    write_whole(path, json_text(value).encode("utf-8"), mode=mode)


def make_directory(path, mode=0o755):
    """Make a directory, and its parents, which all users may enter, whatever the umask is. Another process may make each at the same moment."""
    if os.path.isdir(path):
        return
    make_directory(os.path.dirname(path) or ".")
    mask = os.umask(0o022)
    try:
        os.mkdir(path, mode)
    except (IOError, OSError):
        if not os.path.isdir(path):
            raise
    finally:
        os.umask(mask)


def access_of(path):
    """Mode and owner of a file, as write_whole takes them."""
    status = os.stat(path)
    return {"mode": stat.S_IMODE(status.st_mode), "owner": (status.st_uid, status.st_gid)}


def keeper(path, chooser=None):
    """The uid of the first account, from / on, that can exchange a name on the way to this path for another; 0 if root alone can.

    Raise IOError if somebody else than root and the file's owner chooses which file root changes: by a link on the way, or as `chooser` of the path.
    """
    owner = os.stat(path).st_uid if os.path.exists(path) else 0
    if chooser is not None and (keeper(chooser) or os.stat(chooser).st_uid) not in (0, owner):
        raise IOError("%s names %s, which belongs to another account" % (chooser, path))
    uid, place, parts = 0, "/", path.split("/")
    for _ in range(400):
        if not parts:
            return uid
        uid, directory = uid or exchanger(place, parts[0]), place
        place, parts = os.path.normpath(os.path.join(directory, parts[0])), parts[1:]
        if os.path.islink(place):
            if os.lstat(place).st_uid not in (0, owner):
                raise IOError("%s is a link of another account" % place)
            parts, place = os.readlink(place).split("/") + parts, directory
            place = "/" if not parts[0] else place
    raise IOError("%s has too many links" % path)


def exchanger(directory, name):
    """The uid of an account, besides root, that can give this name in a directory to another file; 0 without one."""
    status, path = os.stat(directory), os.path.join(directory, name)
    if status.st_uid or not status.st_mode & (0o002 if status.st_gid == 0 else 0o022):
        return status.st_uid
    if not status.st_mode & stat.S_ISVTX:
        raise IOError("others than root can exchange the files in %s (chmod go-w)" % directory)
    return os.lstat(path).st_uid if os.path.lexists(path) else 0


@contextlib.contextmanager
def as_keeper(path):
    """Root reads or writes this file as the account that can exchange it meanwhile, for a link to a file of root's, too."""
    uid = keeper(path)
    if uid == 0 or os.geteuid() != 0:
        yield
        return
    groups = os.getgroups()
    try:
        entry = pwd.getpwuid(uid)
        os.initgroups(entry.pw_name, entry.pw_gid)
        os.setegid(entry.pw_gid)
        os.seteuid(uid)
        yield
    except (IOError, OSError, KeyError) as error:
        raise IOError(
            "the account %d can exchange %s, so root works as this account there, but: %s" % (uid, path, error)
        )
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


def replace_link(path, target, prefix=".new-"):
    """Point a link to its target by one rename; a killed run may have left the draft, the name with this prefix."""
    draft = os.path.join(os.path.dirname(path), prefix + os.path.basename(path))
    if os.path.lexists(draft):
        os.unlink(draft)
    os.symlink(target, draft)
    os.rename(draft, path)
    sync_path(os.path.dirname(path))


def sync_path(path):
    """Make a file, or the names in a directory, last."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(directory):
    """Make every file below a directory last, and the names; a mark that follows is not there without them."""
    for parent, _, names in os.walk(directory):
        for path in [os.path.join(parent, name) for name in names] + [parent]:
            if not os.path.islink(path):
                sync_path(path)


def own_name(path):
    """The path with this process's number. Files of processes that ended are removed, also one that had this number."""
    own = "%s-%d" % (path, os.getpid())
    for draft in glob.glob(re.sub(r"([*?[])", r"[\1]", path) + "-*"):
        if draft == own or not is_being_written(draft):
            os.unlink(draft)
    return own


def is_being_written(draft):
    """Whether the process whose number ends the draft's name still runs."""
    try:
        os.kill(int(draft.rpartition("-")[2]), 0)
    except (ValueError, OSError):
        return False
    return True


def write_record(path, content):
    """What only this project knows, as JSON that root alone reads; nothing to remember removes the file."""
    if not content:
        if os.path.lexists(path):
            os.unlink(path)
        return
    make_directory(os.path.dirname(path))
    write_json(path, content, mode=0o600)
