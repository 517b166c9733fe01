"""Who holds the package manager's lock. Python 2.7 and 3.

For rpm's lock, dnf only fails; for its own, it waits without end.
"""

import glob
import os

# RHEL, newer systems, and rpm of the RHEL stand-ins.
RPM_LOCKS = ("/var/lib/rpm/.rpm.lock", "/usr/lib/sysimage/rpm/.rpm.lock", "/root/.rpmdb/.rpm.lock")
# A file with the number of the process that holds it; left by a process that was killed, it locks nothing.
PID_FILES = ("/var/cache/dnf/*_lock.pid", "/var/lib/dnf/*_lock.pid", "/var/run/yum.pid")


def holder(paths=RPM_LOCKS, pid_files=PID_FILES, proc="/proc"):
    """A clause about the process that holds one of these locks; empty if none does."""
    for path in sorted(sum((glob.glob(pattern) for pattern in pid_files), [])):
        try:
            with open(path) as handle:
                pid = handle.read().strip()
        except (IOError, OSError):
            continue
        if pid.isdigit() and os.path.isdir(os.path.join(proc, pid)):
            return "process %s (%s) holds %s" % (pid, command(pid, proc), path)
    files = {}
    for path in paths:
        try:
            status = os.stat(path)
        except (IOError, OSError):
            continue
        files["%02x:%02x:%d" % (os.major(status.st_dev), os.minor(status.st_dev), status.st_ino)] = path
    try:
        with open(os.path.join(proc, "locks")) as handle:
            rows = [line.split() for line in handle]
    except (IOError, OSError):
        return ""
    # 1: POSIX ADVISORY WRITE 606 00:43:4844073 0 EOF; a process that waits has an arrow after its number.
    for row in rows:
        if len(row) == 8 and row[3] == "WRITE" and row[5] in files:
            return "process %s (%s) holds %s" % (row[4], command(row[4], proc), files[row[5]])
    return ""


def command(pid, proc="/proc"):
    try:
        with open(os.path.join(proc, pid, "cmdline"), "rb") as handle:
            words = handle.read().decode("utf-8", "replace").replace("\0", " ").strip()
    except (IOError, OSError):
        words = ""
    return words[:200] or "it has ended"
