"""What the modules of environments share: locks, state files, programs with a limit, who uses a tree. Python 2.7 and 3."""

import errno
import hashlib
import os
import re

from . import environment_tree, lockfile, processes
from .host_lock import HostLocked
from .lockfile import canonical

TOOLS = ("virtualenv",)  # make an environment and are not part of it
KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "HOME", "LD_LIBRARY_PATH", "TZ")


class Refused(Exception):
    """What is needed, what was found and what to do next."""


# --- locks ---------------------------------------------------------------------------------------------------------


def parse_section(text):
    """The artifacts of a lock's section: project, version, sha256, file, size."""
    entries = []
    for _number, _component, line, match in lockfile.lines(text):
        if line.startswith("#"):
            continue
        if not match:
            raise Refused(
                "Every line of a lock must have one version, one sha256, a file and its size, but one is %r. Make the lock "
                "again: scripts/stack lock" % line[:80]
            )
        entry = match.groupdict()
        entries.append(dict(entry, project=canonical(entry["project"]), size=int(entry["size"])))
    return entries


def sections(text):
    """component -> section of a whole lock, each as hadoop_dl.data.locks gives it to a role."""
    section_lines = {}
    for _number, component, line, _match in lockfile.lines(text):
        if line.startswith("#"):
            section_lines[component] = [line]
        elif component:
            section_lines[component].append(line)
    return dict((name, "\n".join(part) + "\n") for name, part in section_lines.items())


def lock_digest(section):
    return hashlib.sha256((section.strip() + "\n").encode("utf-8")).hexdigest()


# --- an environment ------------------------------------------------------------------------------------------------


def state_file(tree, name):
    return os.path.join(tree, environment_tree.STATE, name)


def site_packages(environment):
    """The directory for packages, or None if the environment is not made."""
    lib = os.path.join(environment, "lib")
    for name in sorted(os.listdir(lib)) if os.path.isdir(lib) else []:
        path = os.path.join(lib, name, "site-packages")
        if re.match(r"^python\d+\.\d+$", name) and os.path.isdir(path):
            return path
    return None


def installed(tree):
    """ "project version" of what is in the tree, by the names of its dist-info directories."""
    projects = set()
    directory = site_packages(tree)
    for name in os.listdir(directory) if directory else []:
        match = re.match(r"^([^-]+)-([^-]+)\.dist-info$", name)
        if match:
            projects.add("%s %s" % (canonical(match.group(1)), match.group(2)))
    return projects


# --- processes -----------------------------------------------------------------------------------------------------


def clean_variables(**more):
    """Nothing of the caller's pip, Python or proxy settings reaches an installation."""
    variables = dict((name, os.environ[name]) for name in KEPT_VARIABLES if name in os.environ)
    variables.update({"PIP_CONFIG_FILE": os.devnull, "PYTHONNOUSERSITE": "1"})
    variables.update(more)
    return variables


def run(argv, timeout, variables, lock=None):
    """(exit status, output); status None if it was ended after `timeout` seconds."""
    answer = processes.run(argv, timeout, variables, lock=lock)
    if answer.status == 127 and not answer.output and not answer.error:
        return answer.status, answer.problem
    return answer.status, "\n".join(text for text in (answer.output, answer.error) if text)


def end_with_result(module, work, directory, after=""):
    """Run a module's work and end it with the result, or with the sentence of what stopped it. after: what holds then."""
    try:
        result = work(module)
    except (Refused, HostLocked) as problem:
        module.fail_json(msg=str(problem))
    except (IOError, OSError) as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            raise
        module.fail_json(
            msg="%s must be writable and have room, but the system answers: %s. Correct that, then run the playbook again%s."
            % (directory, error, after)
        )
    module.exit_json(**result)


def in_use(directories):
    """Process ids that run from these directories or have their libraries mapped."""
    prefixes = [path + os.sep for path in directories]
    pids = []
    for pid in os.listdir("/proc"):
        if pid.isdigit() and int(pid) != os.getpid() and any(_touches("/proc/" + pid, prefix) for prefix in prefixes):
            pids.append(int(pid))
    return sorted(pids)


def _touches(process, prefix):
    for link in ("exe", "cwd"):
        try:
            if (os.readlink(os.path.join(process, link)) + os.sep).startswith(prefix):
                return True
        except (IOError, OSError):
            continue
    for name, separator in (("cmdline", b"\0"), ("maps", b"\n")):
        try:
            with open(os.path.join(process, name), "rb") as handle:
                words = handle.read().split(separator)
        except (IOError, OSError):
            continue
        for word in words:
            path = word[word.find(b"/") :] if name == "maps" and b"/" in word else word
            if path.startswith(prefix.encode("utf-8")):
                return True
    return False
