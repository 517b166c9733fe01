"""End the processes that a killed program left behind. Python 2.7 and 3.

bazel does not take its compilers with it: they go on, keep their memory, and write into a tree that the next build uses. Each program has a session of its
own (processes.run), which it writes down before it starts; what is left of it are the processes of that session and all that come from them.
"""

import errno
import os
import signal
import time

from . import processes
from .host_lock import machine

ENDING = 20  # seconds for processes to end
PAUSE = 0.05


def note_session(path):
    """Write down the session of the calling process."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    os.write(descriptor, ("%s %d\n" % (machine(), os.getsid(0))).encode("ascii"))
    os.close(descriptor)


def noted(path):
    """The sessions of this start of the system that were written down; after another one their numbers mean nothing."""
    try:
        with open(path) as handle:
            lines = [line.strip().rpartition(" ") for line in handle]
    except (IOError, OSError):
        return set()
    return set(int(session) for start, _, session in lines if start and start == machine() and session.isdigit())


def table(user):
    """Process id -> (parent, session) of this user's processes; zombies have ended."""
    process_table = {}
    for pid in os.listdir("/proc"):
        if not pid.isdigit():
            continue
        try:
            with open("/proc/%s/status" % pid) as handle:
                owner = [line.split()[1] for line in handle if line.startswith("Uid:")]
            with open("/proc/%s/stat" % pid) as handle:
                state, parent, _, session = handle.read().rpartition(")")[2].split()[:4]
        except (IOError, OSError, ValueError):
            continue  # it has ended
        if owner == [str(user)] and state not in "ZX":
            process_table[int(pid)] = (int(parent), int(session))
    return process_table


def left(sessions, user):
    """The processes of these sessions, and what they started."""
    running = table(user)
    pids = set(pid for pid, (_, session) in running.items() if session in sessions)
    while True:
        children = set(pid for pid, (parent, _) in running.items() if parent in pids) - pids
        if not children:
            return pids
        pids |= children


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError as error:
            if error.errno != errno.ESRCH:
                raise


def end(path, user):
    """End everything that is left of the programs whose sessions are written down there; the ids of what cannot be ended."""
    sessions = noted(path)
    limit = processes.clock() + ENDING
    stopped_pids = set()
    pids = left(sessions, user)
    while pids:
        if processes.clock() > limit:
            return sorted(pids)
        new = pids - stopped_pids
        # A process that is stopped starts no other one, so nothing escapes between the look and the kill.
        send(new or pids, signal.SIGSTOP if new else signal.SIGKILL)
        stopped_pids |= new
        time.sleep(0 if new else PAUSE)
        pids = left(sessions, user)
    try:
        os.unlink(path)
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
    return []
