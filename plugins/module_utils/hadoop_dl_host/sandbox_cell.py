"""Run an unverified program so that it can read this host as any user can and change nothing. Python 2.7 and 3.

    with Cell(path) as cell:
        answer = cell.run([python, "setup.py"], 900, variables)
        ...  # its processes have ended; what it wrote is below path, and untrusted

The program runs as a user number that no account and no process has, without groups, new privileges, network, System V
IPC and the host's /tmp, and with limits of time, memory, processes and the size of a file. If the kernel refuses one
of these, the program does not start. The path is a directory of that user. Its processes and the directory are gone after
the block; after a kill, clear(path) removes both. Whoever uses a cell holds the host's lock.
"""

import errno
import grp
import os
import pwd
import random
import resource
import signal
import stat
import time

from . import processes, sandbox_child

# systemd gives numbers from 61184 on to services, and those up to 60577 to home directories.
NUMBERS = range(60600, 61184)
QUESTION = 60  # seconds for the accounts of a directory service
ENDING = 20  # seconds for processes to end, and for a directory to be removed 10 times that
LIMITS = {
    resource.RLIMIT_AS: 4096 << 20,
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_FSIZE: 512 << 20,
    resource.RLIMIT_NOFILE: 1024,
    resource.RLIMIT_NPROC: 256,
}
# Everybody may write there, and /run has the sockets of services; the cell sees a directory of its own in their place.
HIDDEN = ("/tmp", "/var/tmp", "/dev/shm", "/run")
SEPARATE = sandbox_child.CLONE_NEWNS | sandbox_child.CLONE_NEWIPC | sandbox_child.CLONE_NEWNET


class NotConfined(Exception):
    """A program cannot be confined, or something of it is left; the text is a sentence."""


def refusal():
    """Why root's programs cannot be confined here, as a sentence; None if they can. Nothing is written for this."""
    answer = processes.run(["/bin/true"], QUESTION, prepare=Entry(NUMBERS[0], "/", "/", [], {}))
    return answer.error if answer.status == sandbox_child.NOT_STARTED else None


# --- users that no account has --------------------------------------------------------------------------------------


def of_processes():
    """User number -> ids of the processes that have it as their real, effective or saved one; zombies do not count."""
    user_processes = {}
    for pid in os.listdir("/proc"):
        if not pid.isdigit():
            continue
        try:
            with open("/proc/%s/status" % pid) as handle:
                fields = dict(line.split(":", 1) for line in handle if ":" in line)
        except (IOError, OSError):
            continue
        if not fields.get("State", "").strip().startswith("Z"):
            for number in set(fields.get("Uid", "").split()):
                user_processes.setdefault(int(number), []).append(int(pid))
    return user_processes


def has_account(number):
    for ask in (pwd.getpwuid, grp.getgrgid):
        try:
            ask(number)
            return True
        except KeyError:
            pass
    return False


def free_numbers(count, numbers=NUMBERS):
    """At most so many numbers that no account, no group and no process has."""
    user_processes = of_processes()
    selection = []
    for number in random.sample(list(numbers), len(numbers)):
        if len(selection) < count and number not in user_processes and not has_account(number):
            selection.append(number)
    return selection


def asked(count):
    """So many free numbers. The question has a time limit, because a directory service may not answer."""
    try:
        numbers = processes.limited(lambda: free_numbers(count), QUESTION)
    except processes.Late:
        raise NotConfined(
            "The accounts of this host must be readable, but their service gave no answer within %d s. Check nsswitch.conf "
            "and the directory service (getent passwd %d)." % (QUESTION, NUMBERS[0])
        )
    if len(numbers) < count:
        raise NotConfined(
            "%d user numbers between %d and %d must be free, but accounts or processes have all others than %d. Free one."
            % (count, NUMBERS[0], NUMBERS[-1], len(numbers))
        )
    return numbers


def end_processes(number):
    """Kill every process of this user, also one that forks without end: the kernel signals all of them at once.

    The killer has the number as its effective one only, so that nothing of that user can kill it first.
    """
    if number not in NUMBERS:
        raise NotConfined("%d is no user number of confined programs." % number)
    end = processes.clock() + ENDING
    while True:
        user_processes = of_processes()
        pids = user_processes.get(number)
        if not pids:
            return
        if processes.clock() > end:
            raise NotConfined(
                "Processes of the user number %d must end but cannot be killed: %s. They wait in the kernel; see ps -o "
                "pid,stat,wchan,args, and reboot the host if they stay."
                % (number, ", ".join(str(pid) for pid in pids[:10]))
            )
        # Without the accounts: a directory service that does not answer must not keep a program alive.
        killer = max(set(NUMBERS).difference(user_processes))  # refusal() has the lowest one
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setresgid(killer, killer, killer)
                os.setresuid(killer, number, killer)
                if os.geteuid() == number and os.getuid() == killer:  # with root's real number it would kill everything
                    os.kill(-1, signal.SIGKILL)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        time.sleep(0.02)


# --- a directory of such a user -------------------------------------------------------------------------------------


def clear(path):
    """Remove a cell that a killed run left: first the processes of its user, then its directory."""
    try:
        status = os.lstat(path)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return
        raise
    if status.st_uid != 0 and os.geteuid() == 0:
        end_processes(status.st_uid)
    # Whoever owned it may have nested directories deeper than a path can name; rm follows no link and needs no path.
    answer = processes.run(["/bin/rm", "-rf", "--one-file-system", "--", path], 10 * ENDING)
    if answer.status != 0:
        raise NotConfined("%s must be removed, but %s. Remove it." % (path, answer.problem))


def closed(paths):
    """The first file or directory on the way to one of these that other users cannot read or enter; None without one."""
    for path in paths:
        path = os.path.realpath(path)
        while True:
            mode = os.stat(path).st_mode
            if not mode & stat.S_IXOTH:
                return path
            if path == "/":
                break
            path = os.path.dirname(path)
    return None


class Cell(object):
    """A directory, a user number and a program with nothing else."""

    def __init__(self, path, limits=()):
        """limits: in place of some of LIMITS."""
        self.path, self.number, self.limits = path, None, dict(LIMITS)
        self.limits.update(limits)
        self.temporary = os.path.join(path, "tmp")

    def __enter__(self):
        if os.geteuid() != 0:
            raise NotConfined("Only root can run a program as a user that no account has. Run this as root (become).")
        clear(self.path)
        blocked = closed([os.path.dirname(self.path)])
        if blocked:
            raise NotConfined(
                "Unverified programs run as a user without rights, so all users must be able to enter %s "
                "(chmod o+x)." % blocked
            )
        [self.number] = asked(1)
        for directory in (self.path, self.temporary):
            os.mkdir(directory, 0o700)
            os.chown(directory, self.number, self.number)
        return self

    def __exit__(self, *_):
        clear(self.path)

    def run(self, argv, seconds, variables):
        """As processes.run. When it returns, nothing of the user runs any more."""
        own_variables = {"HOME": self.path, "TMPDIR": self.temporary}
        try:
            answer = processes.run(
                argv, seconds, dict(variables, **own_variables), directory=self.path, prepare=self._preparation()
            )
        finally:
            end_processes(self.number)
        if answer.status == sandbox_child.NOT_STARTED and answer.error.startswith(Entry.REFUSED):
            raise NotConfined(answer.error)
        return answer

    def _preparation(self):
        paths = [path for path in HIDDEN if os.path.isdir(path)]
        root = os.path.realpath(self.path) + "/"
        # A test's /opt/deeplearning may be below /tmp.
        paths = [path for path in paths if not root.startswith(os.path.realpath(path) + "/")]
        return Entry(self.number, self.path, self.temporary, paths, self.limits)


class Entry(sandbox_child.Child):
    """The way of a program into its cell."""

    REFUSED = "This host must be able to confine a program but refuses"

    def __init__(self, number, directory, temporary, hidden, limits):
        super(Entry, self).__init__()
        self.limits = limits
        self.number, self.directory, self.temporary = number, directory, temporary.encode("utf-8")
        self.hidden = [path.encode("utf-8") for path in hidden]

    def enter(self):
        self.call("a network of its own", self.unshare, SEPARATE)
        self.mount_privately()
        for path in self.hidden:
            self.call("mounts of its own", self.mount, self.temporary, path, None, sandbox_child.MS_BIND, None)
        for limit, value in self.limits.items():
            hard = resource.getrlimit(limit)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(limit, (value, value))
        with open("/proc/self/oom_score_adj", "w") as handle:
            handle.write("1000")  # a host without memory ends this first
        os.setgroups([])
        os.setresgid(self.number, self.number, self.number)
        os.setresuid(self.number, self.number, self.number)
        self.give_up_privileges()
        os.umask(0o077)
        os.chdir(self.directory)
