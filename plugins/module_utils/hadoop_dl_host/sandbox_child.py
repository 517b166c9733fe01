"""A child gives up rights between fork and exec (`prepare` of processes.run). If the kernel refuses, the program does not start.

Everything is looked up before: a child must not wait for a lock. Python 2.7 and 3, standard library only.
"""

import ctypes
import os
import signal

# From linux/sched.h, linux/mount.h and linux/prctl.h
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x08000000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
NOT_STARTED = 125  # exit status if the kernel refused


class Child(object):
    """A subclass defines `enter`, and in REFUSED the beginning of the sentence about what the kernel refused."""

    REFUSED = ""

    def __init__(self):
        self.parent = os.getpid()
        self.library = ctypes.CDLL(None, use_errno=True)
        self.unshare, self.prctl = self.library.unshare, self.library.prctl
        self.unshare.argtypes = [ctypes.c_int]
        self.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
        self.mount = self.library.mount
        self.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_void_p]

    def __call__(self):
        try:
            self.enter()
        except BaseException as problem:
            text = "%s %s." % (self.REFUSED, problem)
            os.write(2, text if isinstance(text, bytes) else text.encode("utf-8"))
            os._exit(NOT_STARTED)

    def enter(self):
        raise NotImplementedError

    def mount_privately(self):
        """From now on only this process and its children see what it mounts."""
        self.call("mounts of its own", self.mount, None, b"/", None, MS_REC | MS_PRIVATE, None)

    def gain_no_privileges(self):
        """From now on no program gives rights of another user or capabilities: not sudo, not su."""
        self.call("no new privileges", self.prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)

    def give_up_privileges(self):
        """Gain no privileges, and end with the caller, even with one that has already ended."""
        self.gain_no_privileges()
        self.call("an end with its caller", self.prctl, PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != self.parent:
            os._exit(NOT_STARTED)

    @staticmethod
    def call(feature, function, *arguments):
        if function(*arguments) != 0:
            raise OSError("%s (%s)" % (feature, os.strerror(ctypes.get_errno())))
