"""Run a build as an unprivileged user, without a network, with its output in a log. Python 2.7 and 3.

What is built is pinned by a commit, but its rules are programs: they see the host as its user does and a loopback device of their own. Unlike a
cell (sandbox_cell) the user has an account and keeps its files, because a build of hours is resumed from them.
"""

import fcntl
import os
import socket
import struct

from . import processes, sandbox_child, stray_processes

# From linux/sockios.h and linux/if.h
SIOCSIFFLAGS = 0x8914
IFF_UP, IFF_RUNNING = 0x1, 0x40
FIRST_TO_END = "500"  # of 1000: without memory the kernel ends a build before the host's services


class BuildSandbox(sandbox_child.Child):
    """Makes a child the build's user, without a network."""

    REFUSED = "This host must be able to run a program without a network but refuses"

    def __init__(self, user, log=None, sessions=None):
        super(BuildSandbox, self).__init__()
        self.name, self.number, self.group = processes.account(user)
        self.sessions = sessions  # a file for stray_processes.end
        self.log = log  # a descriptor: the program's output goes there, and not to the caller

    def enter(self):
        if self.sessions is not None:
            stray_processes.note_session(self.sessions)
        with open("/proc/self/oom_score_adj", "w") as handle:
            handle.write(FIRST_TO_END)
        if os.geteuid() == 0:
            self.call("a network of its own", self.unshare, sandbox_child.CLONE_NEWIPC | sandbox_child.CLONE_NEWNET)
            loopback_up()
            os.initgroups(self.name, self.group)
            os.setgid(self.group)
            os.setuid(self.number)
        self.give_up_privileges()
        os.umask(0o022)
        if self.log is not None:
            os.dup2(self.log, 1)
            os.dup2(self.log, 2)


def loopback_up():
    """bazel's client and server talk over it."""
    control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", IFF_UP | IFF_RUNNING, b""))
    control.close()
