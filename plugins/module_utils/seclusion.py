# -*- coding: utf-8 -*-
"""Run a build as an unprivileged user, without a network, with its output in a log. Python 2.7 and 3.

What is built is pinned by a commit, but its rules are programs: they see the host as its user does and a loopback device of their own. Unlike a
cell (confinement) the user has an account and keeps its files, because a build of hours is resumed from them.
"""

from __future__ import absolute_import, division, print_function

import ctypes
import fcntl
import os
import signal
import socket
import struct

try:
    from ansible.module_utils import processes
except ImportError:  # where there is no Ansible
    import processes

# From linux/sched.h, linux/prctl.h, linux/sockios.h and linux/if.h
CLONE_NEWIPC, CLONE_NEWNET = 0x08000000, 0x40000000
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
SIOCSIFFLAGS = 0x8914
IFF_UP, IFF_RUNNING = 0x1, 0x40
NOT_STARTED = 125  # exit status where the program could not be secluded


class Seclusion(object):
    """What the child does between fork and exec, as `prepare` of processes.run. Everything is looked up before."""

    REFUSED = "This host must be able to run a program without a network but refuses"

    def __init__(self, user, log=None):
        self.name, self.number, self.group = processes.account(user)
        self.log = log  # a descriptor: the program's output goes there, and not to the caller
        self.parent = os.getpid()
        library = ctypes.CDLL(None, use_errno=True)
        self.unshare, self.prctl = library.unshare, library.prctl
        self.unshare.argtypes = [ctypes.c_int]
        self.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4

    def __call__(self):
        try:
            self.enter()
        except BaseException as problem:
            os.write(2, ("%s %s." % (self.REFUSED, problem)).encode("utf-8"))
            os._exit(NOT_STARTED)

    def enter(self):
        if os.geteuid() == 0:
            self.call("a network of its own", self.unshare, CLONE_NEWIPC | CLONE_NEWNET)
            loopback_up()
            os.initgroups(self.name, self.group)
            os.setgid(self.group)
            os.setuid(self.number)
        self.call("no new privileges", self.prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        self.call("an end with its caller", self.prctl, PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != self.parent:
            os._exit(NOT_STARTED)
        os.umask(0o022)
        if self.log is not None:
            os.dup2(self.log, 1)
            os.dup2(self.log, 2)

    @staticmethod
    def call(what, function, *arguments):
        if function(*arguments) != 0:
            raise OSError("%s (%s)" % (what, os.strerror(ctypes.get_errno())))


def loopback_up():
    """bazel's client and server talk over it."""
    control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", IFF_UP | IFF_RUNNING, b""))
    control.close()
