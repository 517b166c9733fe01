"""Run programs on a host so that none of them can hold its caller: every wait has a limit. Python 2.7 and 3.

Part of modules, and of the scripts that hadoop_dl.hosts.host_script pipes into a host's Python.
"""

import collections
import json
import os
import pwd
import select
import signal
import stat
import subprocess
import sys
import threading
import time
import traceback

GRACE = 1.0  # seconds for the rest of the output, once the program has ended or was killed
LARGEST = 64 * 1024 * 1024  # bytes of output that are kept
CHUNK = 64 * 1024
# Seconds of a clock that nobody sets. Python 2.7 has no time.monotonic; times(2) counts from the start of the system as well.
clock = getattr(time, "monotonic", lambda: os.times()[4])

NOT_RUN = (IOError, OSError, getattr(subprocess, "SubprocessError", OSError))

# status: of the program; 127 if it cannot be run, None if it did not end. late: it was ended at the limit.
# problem: what went wrong, as a clause without its period; None for status 0.
Answer = collections.namedtuple("Answer", "status output error late problem")


class Late(Exception):
    """Something did not end within its limit; the text says what."""


class Timer(threading.Thread):
    """Calls action() after these seconds, unless it is cancelled before. Python 2.7's own timer goes by the clock on the wall."""

    def __init__(self, seconds, action):
        super(Timer, self).__init__()
        self.daemon = True
        self.end = clock() + seconds
        self.action = action
        self.cancelled = False
        self.start()

    def run(self):
        while not self.cancelled and clock() < self.end:
            time.sleep(max(0.0, min(0.2, self.end - clock())))
        if not self.cancelled:
            self.action()

    def cancel(self):
        self.cancelled = True


class Output(object):
    """Reads what a program says, without a thread.

    While a thread ends, the C library may load another one. A child that is forked in this moment waits forever for the lock
    of that as soon as it asks for an account (Python 3.9, glibc 2.31: 16 of 2000 children that followed a program).
    """

    def __init__(self, pipes):
        self.open = list(pipes)
        self.said = dict((pipe, bytearray()) for pipe in pipes)

    def follow(self, process, seconds):
        """Until the program has ended and its output is read, or the time is over. Its children get GRACE after its end."""
        end, has_ended, step = clock() + seconds, False, 0.001
        while clock() < end:
            if not has_ended and process.poll() is not None:
                has_ended, end = True, min(end, clock() + GRACE)
            if has_ended and not self.open:
                return
            for pipe in select.select(self.open, [], [], step)[0]:
                self.read(pipe)
            step = min(0.05, step * 2)

    def read(self, pipe):
        chunk = os.read(pipe.fileno(), CHUNK)
        if not chunk:
            self.open.remove(pipe)
        elif len(self.said[pipe]) < LARGEST:
            self.said[pipe] += chunk

    def text(self, pipe):
        return self.said[pipe].decode("utf-8", "replace").strip()


def which(name, places=None):
    """The path of a program in these directories, or in those of PATH; empty if there is none. An absolute name is its path."""
    for place in os.environ.get("PATH", os.defpath).split(os.pathsep) if places is None else places:
        path = os.path.join(place, name)
        if place and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return ""


def account(user):
    """(name, uid, gid) of a user, by name or number."""
    entry = pwd.getpwuid(user) if isinstance(user, int) else pwd.getpwnam(user)
    return entry.pw_name, entry.pw_uid, entry.pw_gid


def has_account(user):
    try:
        return bool(account(user))
    except KeyError:
        return False


def foreign(paths, owners=(0,), groups=()):
    """(path, uid) of the first file or directory on the way to one of these that others than its owners may change; None if there is none.

    groups: those that may write, too.
    """
    for path in paths:
        path = os.path.realpath(path)
        while True:
            try:
                status = os.stat(path)
            except (IOError, OSError):
                break
            others = 0o002 if status.st_gid in groups else 0o022
            shared = status.st_mode & others and not (stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX)
            if status.st_uid not in owners or shared:
                return path, status.st_uid
            if path == "/":
                break
            path = os.path.dirname(path)
    return None


def unprivileged(paths):
    """The user as whom root runs a program of these files: None (root) if only root can change them, else their owner or nobody."""
    foreign_file = foreign(paths) if os.geteuid() == 0 else None
    if foreign_file is None:
        return None
    try:
        return pwd.getpwuid(foreign_file[1]).pw_uid if foreign_file[1] != 0 else pwd.getpwnam("nobody").pw_uid
    except KeyError:
        return pwd.getpwnam("nobody").pw_uid


def run(argv, seconds, environment=None, user=None, lock=None, directory="/", prepare=None):
    """Run a program in this directory with no input; end it, with its process group, after this many seconds.

    lock: a HostLock that the program holds too, so that the next run waits for it when its caller is killed.
    prepare: called in the child before the program starts, as its last step as root.
    """
    identity = account(user) if user is not None else None
    settings = {"cwd": directory, "env": environment, "close_fds": True}
    if lock is not None and sys.version_info[0] > 2:
        settings["pass_fds"] = [lock.descriptor]
    elif lock is not None:
        settings["close_fds"] = False  # Python 2.7 closes descriptors after begin(), and has no pass_fds

    def begin():
        os.setsid()
        if lock is not None:
            lock.inherit()
        if identity is not None:
            os.initgroups(identity[0], identity[2])
            os.setgid(identity[2])
            os.setuid(identity[1])
        if prepare is not None:
            prepare()

    command = " ".join(argv)
    with open(os.devnull, "rb") as devnull:
        try:
            process = subprocess.Popen(
                argv, stdin=devnull, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=begin, **settings
            )
        except NOT_RUN as error:
            cause = os.strerror(error.errno) if getattr(error, "errno", None) else str(error)
            return Answer(127, "", "", False, "%s cannot be run: %s" % (argv[0], cause))
    pipes = [process.stdout, process.stderr]
    program_output = Output(pipes)
    program_output.follow(process, seconds)
    late = process.poll() is None
    if late or program_output.open:
        end_group(process.pid)
        program_output.follow(process, GRACE)
    output, error = map(program_output.text, pipes)
    for pipe in pipes:
        pipe.close()
    status = None if late else process.returncode
    problem = None
    if late:
        remark = ", and could not be killed" if process.poll() is None else ""
        problem = "%s did not end within %g s%s" % (command, seconds, remark)
    elif status != 0:
        last_line = (error or output or "no output").splitlines()[-1]
        problem = "%s ended with status %d: %s" % (command, status, last_line)
    return Answer(status, output, error, late, problem)


def end_group(leader):
    try:
        os.killpg(leader, signal.SIGKILL)
    except (IOError, OSError):
        return  # it has ended


def detach():
    """Leave the session and the standard files of the parent: whoever reads those to the end must not wait for this process."""
    os.setsid()
    devnull = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(devnull, standard)


def limited(function, seconds):
    """What function() answers (JSON must be able to carry it), from a child process that is abandoned after this many seconds.

    A file system that does not answer holds a process in the kernel, where no signal reaches it.
    """
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiving)
        detach()
        try:
            text = json.dumps({"answer": function()})
        except BaseException:  # the parent reports it
            text = json.dumps({"failure": traceback.format_exc()})
        with os.fdopen(sending, "wb") as handle:
            handle.write(text.encode("utf-8"))
        os._exit(0)
    os.close(sending)
    chunks = []
    end = clock() + seconds
    while True:
        ready = select.select([receiving], [], [], max(0, end - clock()))[0]
        if not ready:
            end_group(child)
            raise Late("no answer within %g s" % seconds)
        chunk = os.read(receiving, CHUNK)
        if not chunk:
            break
        chunks.append(chunk)
    os.close(receiving)
    status = os.waitpid(child, 0)[1]
    if not chunks:  # a library crashed in it, or the kernel ended it for its memory
        raise RuntimeError("the process that asked was ended by signal %d" % os.WTERMSIG(status))
    message = json.loads(b"".join(chunks).decode("utf-8"))
    if "failure" in message:
        raise RuntimeError(message["failure"])
    return message["answer"]
