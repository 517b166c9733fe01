"""Run foreign code as the user who is here, without that user's sudo, network and files. Python 2.7 and 3, standard library only.

Unlike a cell (sandbox_cell) and the user of a build (sandbox_build) this needs no root, but a kernel that lets users have namespaces.
"""

import os
import pwd
import re

from . import processes, sandbox_build, sandbox_cell, sandbox_child

SECONDS = 30
NAMESPACES = (
    sandbox_child.CLONE_NEWUSER | sandbox_child.CLONE_NEWNS | sandbox_child.CLONE_NEWIPC | sandbox_child.CLONE_NEWNET
)
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_RELATIME = 1, 2, 4, 32, 1 << 21  # from linux/mount.h
# statvfs's bits that mount has too (nosuid, nodev, noexec, noatime, nodiratime), and relatime: what root mounted so, a user must leave so.
SAME_BITS, ST_RELATIME = 2 | 4 | 8 | 1024 | 2048, 4096


def homes():
    """The directories of the user's own files; "/" cannot be hidden."""
    directories = [pwd.getpwuid(os.geteuid()).pw_dir, os.environ.get("HOME", "/")]
    return sorted(set(os.path.realpath(path) for path in directories if os.path.isdir(path)) - set(["/"]))


def named_in_homes(values):
    """The directories of the user's own tools that these values name: ~/jdk for ~/jdk/bin, but of hidden ones just what is named (~/.local/bin)."""
    directories = set()
    for home in homes():
        for value in values:
            directories.update(re.findall(re.escape(home) + r"/+(?:\.[^:\s]*|[^/:\s]+)", value))
    return sorted(path for path in directories if os.path.isdir(path))


def is_below(path, directory):
    return path.startswith(directory + "/")


class WithoutSudo(sandbox_child.Child):
    """The user may be allowed to become root: the program is not. It may outlive its caller."""

    REFUSED = "This host must be able to start a program without new privileges but refuses"

    def enter(self):
        self.gain_no_privileges()


class UserSandbox(WithoutSudo):
    """... and it has no network, and of the home directories only one that it changes and some that it reads."""

    REFUSED = "This host should let users have namespaces (sysctl user.max_user_namespaces) but refuses"

    def __init__(self, changed, read=()):
        super(UserSandbox, self).__init__()
        self.user, self.group = os.geteuid(), os.getegid()
        self.changed = os.path.realpath(changed)
        self.kept = [os.path.realpath(path) for path in read] + [self.changed]
        places = homes() + [os.path.realpath(path) for path in sandbox_cell.HIDDEN if os.path.isdir(path)]
        # Below a hidden one nothing is left to hide: a test's home is in /tmp.
        self.hidden = sorted(path for path in set(places) if not any(is_below(path, place) for place in places))

    def refusal(self):
        """What the kernel refuses, as a sentence; empty if it grants all."""
        answer = processes.run(["true"], SECONDS, prepare=self)
        return answer.error if answer.status == sandbox_child.NOT_STARTED else ""

    def enter(self):
        self.call("namespaces of its own", self.unshare, NAMESPACES)
        for name, text in (("setgroups", "deny"), ("uid_map", "%d %d 1"), ("gid_map", "%d %d 1")):
            number = self.user if name == "uid_map" else self.group
            with open("/proc/self/" + name, "w") as handle:
                handle.write(text % (number, number) if "%" in text else text)
        sandbox_build.loopback_up()
        self.mount_privately()
        open_paths = [(path, os.open(path, os.O_RDONLY)) for path in self.kept]
        for path in self.hidden:
            self.put(b"tmpfs", path, b"tmpfs", MS_NOSUID | MS_NODEV)
        for path, descriptor in open_paths:
            if any(is_below(path, place) for place in self.hidden):
                self.show(path, descriptor)
            os.close(descriptor)
        self.gain_no_privileges()

    def show(self, path, descriptor):
        """Give a directory its place again, from the descriptor of before."""
        if not os.path.isdir(path):
            os.makedirs(path)
        bind = sandbox_child.MS_BIND
        self.put(b"/proc/self/fd/%d" % descriptor, path, None, bind | sandbox_child.MS_REC)
        if path != self.changed:
            flags = os.statvfs(path).f_flag
            kept_flags = flags & SAME_BITS | (MS_RELATIME if flags & ST_RELATIME else 0)
            self.put(None, path, None, bind | MS_REMOUNT | MS_RDONLY | kept_flags)

    def put(self, source, path, kind, flags):
        self.call("mounts of its own", self.mount, source, path.encode("utf-8"), kind, flags, None)
