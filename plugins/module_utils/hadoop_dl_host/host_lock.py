"""One lock per host, for everything that changes it. Python 2.7 and 3, standard library only.

    from .host_lock import HostLock, HostLocked

    with HostLock("Spark 3.5.8", wait=600):
        ...  # nobody else changes this host now

- `purpose` is what a waiting run reads about its holder: a few words, no secrets.
- `wait` is the limit in seconds. When it is over, HostLocked is raised; its text is the message for module.fail_json.
- The lock is /opt/deeplearning/.lock (or `root`/.lock), mode 0600: with a readable file any local user could hold it.
- The kernel releases it when the process ends, however it ends. A program that must keep it when its module is killed
  inherits it: run it with preexec_fn=lock.inherit (Python 3: with pass_fds=[lock.descriptor] as well).
- Ansible's own modules do not take it: they replace whole files, and the package managers have locks of their own.
- It is not reentrant: take it once, at the outermost place. Do not take it in check mode: that changes nothing.
"""

import contextlib
import errno
import fcntl
import json
import os
import time

from . import atomic_files
from .processes import clock

ROOT = "/opt/deeplearning"
NAME = ".lock"
POLL = 0.5  # seconds between two tries


class HostLocked(Exception):
    """Another run holds the host; the text names it."""


@contextlib.contextmanager
def unless_checking(module, lock):
    """With the lock; without one (None) if the module runs in check mode."""
    if module.check_mode:
        yield None
        return
    with lock:
        yield lock


def machine():
    """The running system and the processes that are seen from here, as a container has its own (linux/proc_ns.h); empty if unknown."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as handle:
            return "%s %s" % (handle.readline().strip(), os.readlink("/proc/self/ns/pid"))
    except (IOError, OSError):
        return ""


def is_held(root):
    """Whether another process has the lock of this directory now."""
    try:
        with HostLock("a question", 0, root):
            return False
    except HostLocked:
        return True


class HostLock(object):
    """Exclusive use of this host by one changing run at a time."""

    def __init__(self, purpose, wait=600, root=ROOT):
        self.purpose, self.wait, self.root = purpose, wait, root
        self.path = os.path.join(root, NAME)
        self.descriptor = None

    def __enter__(self):
        end = clock() + self.wait
        while True:
            self.descriptor = self._open()
            try:
                os.fchmod(self.descriptor, 0o600)  # an older version left it readable
                flags = fcntl.fcntl(self.descriptor, fcntl.F_GETFD)
                fcntl.fcntl(self.descriptor, fcntl.F_SETFD, flags | fcntl.FD_CLOEXEC)  # a daemon started meanwhile
                self._take(end)
                if self._is_current():
                    self._write({"pid": os.getpid(), "purpose": self.purpose})
                    return self
            except BaseException:
                self._close()
                raise
            self._close()  # its holder removed the file: only who has the new one has the lock

    def __exit__(self, *_):
        self._write({})
        self._close()

    def inherit(self):
        """For preexec_fn: the program that is about to start holds the lock as well."""
        flags = fcntl.fcntl(self.descriptor, fcntl.F_GETFD)
        fcntl.fcntl(self.descriptor, fcntl.F_SETFD, flags & ~fcntl.FD_CLOEXEC)

    def remove_if_alone(self):
        """Remove the directory, if only the held lock is in it; whoever waits for the lock creates both again."""
        if os.listdir(self.root) != [NAME]:
            return
        os.unlink(self.path)
        try:
            os.rmdir(self.root)
        except (IOError, OSError) as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY):  # it is used again, or mounted
                raise

    def _open(self):
        """The lock's file, with its directory. Who removes both may do so between the two steps."""
        tries = 0
        while True:
            atomic_files.make_directory(self.root)
            tries += 1
            try:
                return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            except (IOError, OSError) as error:
                if error.errno != errno.ENOENT or tries == 3:
                    raise

    def _is_current(self):
        try:
            return os.path.samestat(os.fstat(self.descriptor), os.stat(self.path))
        except OSError:
            return False

    def _take(self, end):
        while True:
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except (IOError, OSError) as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
            if clock() >= end:
                raise HostLocked(
                    "Only one run at a time may change this host. %s has held %s for more than %d s. "
                    "Wait until it ends, or find it: fuser -v %s" % (self._holder(), self.path, self.wait, self.path)
                )
            time.sleep(min(POLL, max(0.01, end - clock())))

    def _holder(self):
        try:
            os.lseek(self.descriptor, 0, os.SEEK_SET)
            holder = json.loads(os.read(self.descriptor, 4096).decode("utf-8", "replace"))
            return "%s (process %d)" % (holder["purpose"], holder["pid"])
        except (ValueError, KeyError, TypeError):
            return "Another run"

    def _write(self, holder):
        """A full disk must not stop a run that only says who it is."""
        try:
            os.ftruncate(self.descriptor, 0)
            os.lseek(self.descriptor, 0, os.SEEK_SET)
            os.write(self.descriptor, json.dumps(holder).encode("utf-8"))
        except (IOError, OSError):
            pass

    def _close(self):
        os.close(self.descriptor)
        self.descriptor = None
