# -*- coding: utf-8 -*-
"""What an environment holds and what a lock wants: shared by locked_packages and environment_seal. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import base64
import csv
import errno
import fcntl
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

try:
    import environment_tree
except ImportError:  # on a host, inside the module's payload
    from ansible.module_utils import environment_tree

LINE = re.compile(r"^([A-Za-z0-9][\w.-]*)==(\S+) --hash=sha256:([0-9a-f]{64})(?:  # ([A-Za-z0-9][\w.+-]*) (\d+))?$")
TOOLS = ("virtualenv",)  # make an environment and are not part of it
CHUNK = 1 << 20
KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "HOME", "LD_LIBRARY_PATH", "TZ")


class Refused(Exception):
    """What is needed, what was found and what to do next."""


# --- locks ---------------------------------------------------------------------------------------------------------


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_section(text):
    """The artifacts of a lock's section: project, version, sha256, file (or None), size (or 0)."""
    entries = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        match = LINE.match(line)
        if not match:
            raise Refused(
                "Every line of a lock needs one version and one sha256, and one is %r. Make the lock anew: "
                "scripts/stack lock" % line[:80]
            )
        entries.append(
            {
                "project": canonical(match.group(1)),
                "version": match.group(2),
                "sha256": match.group(3),
                "file": match.group(4),
                "size": int(match.group(5) or 0),
                "line": line,
            }
        )
    return entries


def sections(text):
    """component -> section of a whole lock, each as hadoop_dl.locks gives it to a role."""
    found = {}
    component = None
    for line in text.splitlines():
        heading = re.match(r"^# component: (\w+)$", line)
        if heading:
            component = heading.group(1)
            found[component] = [line]
        elif line and component and not line.startswith("#"):
            found[component].append(line)
    return dict((name, "\n".join(part) + "\n") for name, part in found.items())


def lock_digest(section):
    return hashlib.sha256((section.strip() + "\n").encode("utf-8")).hexdigest()


# --- an environment ------------------------------------------------------------------------------------------------


def state_file(environment, name):
    return os.path.join(environment, environment_tree.STATE, name)


def read_json(path):
    try:
        with open(path, "rb") as handle:
            value = json.loads(handle.read().decode("utf-8"))
        return value if isinstance(value, dict) else {}
    except (IOError, OSError):
        return None
    except ValueError:
        return {}


def write_whole(path, data):
    """Write bytes so that the name never shows a part of them."""
    handle, draft = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".draft-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(draft, 0o644)
        os.rename(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def write_json(path, value):
    write_whole(path, (json.dumps(value, indent=1, sort_keys=True) + "\n").encode("utf-8"))


def site_packages(environment):
    """The directory for packages, or None where the environment is not made."""
    lib = os.path.join(environment, "lib")
    for name in sorted(os.listdir(lib)) if os.path.isdir(lib) else []:
        path = os.path.join(lib, name, "site-packages")
        if re.match(r"^python\d+\.\d+$", name) and os.path.isdir(path):
            return path
    return None


def installed(environment):
    """project -> (version, name of its dist-info directory)."""
    found = {}
    packages = site_packages(environment)
    for name in os.listdir(packages) if packages else []:
        if name.endswith(".dist-info") and not name.startswith("~"):
            project, version = identity(os.path.join(packages, name, "METADATA"))
            if project:
                found[canonical(project)] = (version, name)
    return found


def identity(path):
    """Name and version from a METADATA file; None, None where it is missing or damaged."""
    values = {}
    try:
        with io.open(path, encoding="utf-8", errors="replace") as handle:
            for line in handle:
                if not line.strip():
                    break
                key, _, value = line.partition(":")
                values.setdefault(key.lower(), value.strip())
    except (IOError, OSError):
        return None, None
    return values.get("name"), values.get("version")


def same_version(left, right):
    """1.0 and 1.0.0 are not told apart by pip; post releases have two spellings."""

    def key(version):
        text = re.sub(
            r"[-_.]?(?:post|rev|r)[-_.]?(\d+)$|-(\d+)$", lambda m: ".post" + (m.group(1) or m.group(2)), version
        )
        return re.sub(r"(\.0)+(?=$|\.post)", "", text.lower())

    return key(left) == key(right)


def missing_packages(environment, entries):
    """Sentences about lock entries that are not there, or not at their version."""
    there = installed(environment)
    found = []
    for entry in entries:
        if entry["project"] in TOOLS:
            continue
        version = there.get(entry["project"], (None, None))[0]
        if version is None:
            found.append("%(project)s %(version)s is not installed" % entry)
        elif not same_version(version, entry["version"]):
            found.append("%s is %s instead of %s" % (entry["project"], version, entry["version"]))
    return found


def record_problems(environment):
    """Compare every installed file with the hash in its package's RECORD."""
    packages = site_packages(environment)
    found = []
    for _, information in sorted(installed(environment).values(), key=lambda item: item[1]):
        record = os.path.join(packages, information, "RECORD")
        try:
            rows = read_record(record)
        except (IOError, OSError):
            found.append("%s has no RECORD" % information)
            continue
        for name, expected in rows:
            path = os.path.normpath(os.path.join(packages, name))
            if not path.startswith(os.path.normpath(environment) + os.sep):
                found.append("%s: %s lies outside the environment" % (information, name))
            elif name.endswith((".pyc", ".pyo")) or name.startswith(information + "/"):
                # Some wheels carry bytecode, which installing writes anew; some were edited after their RECORD was
                # written (tensorflow 1.15.0: METADATA, *.bak). The wheel's own bytes are what the lock has proved.
                continue
            elif not expected:
                if not name.endswith((".pyc", "/RECORD", "/RECORD.jws", "/RECORD.p7s")):
                    found.append("%s: %s has no hash" % (information, name))
            elif file_hash(path, expected.partition("=")[0]) != expected:
                found.append(
                    "%s: %s" % (information, "changed: " + name if os.path.exists(path) else "missing: " + name)
                )
    return found


def read_record(path):
    if sys.version_info[0] == 2:
        with open(path, "rb") as handle:
            return [(row[0], row[1]) for row in csv.reader(handle) if row]
    with io.open(path, encoding="utf-8", errors="surrogateescape", newline="") as handle:
        return [(row[0], row[1]) for row in csv.reader(handle) if row]


def file_hash(path, algorithm):
    """algorithm=urlsafe-base64, as RECORD writes it; empty where the file cannot be read."""
    try:
        digest = hashlib.new(algorithm)
        with open(path, "rb") as handle:
            for chunk in iter(lambda: handle.read(CHUNK), b""):
                digest.update(chunk)
    except (IOError, OSError, ValueError):
        return ""
    return algorithm + "=" + base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode("ascii")


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        for chunk in iter(lambda: handle.read(CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


# --- processes and turns -------------------------------------------------------------------------------------------


def clean_variables(**more):
    """Nothing of the caller's pip, Python or proxy settings reaches an installation."""
    variables = dict((name, os.environ[name]) for name in KEPT_VARIABLES if name in os.environ)
    variables.update({"PIP_CONFIG_FILE": os.devnull, "PYTHONNOUSERSITE": "1"})
    variables.update(more)
    return variables


def run(argv, timeout, variables, directory="/", inherit=None):
    """(exit status, output); the whole process group is ended after `timeout` seconds (status None)."""
    with tempfile.TemporaryFile() as output:
        settings = {
            "stdin": open(os.devnull),
            "stdout": output,
            "stderr": subprocess.STDOUT,
            "env": variables,
            "cwd": directory,
            "preexec_fn": os.setsid,
        }
        if inherit is not None and sys.version_info[0] > 2:
            settings["pass_fds"] = [inherit]
        process = subprocess.Popen(argv, **settings)
        late = []

        def end():
            late.append(True)
            os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(timeout, end)
        timer.start()
        try:
            status = process.wait()
        finally:
            timer.cancel()
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    return (None if late else status), text


class Turn(object):
    """Only one run works on the environments of a host. pip inherits the lock, so it holds while an orphaned pip runs."""

    def __init__(self, directory, wait):
        self.path = os.path.join(directory, ".lock")
        self.wait = wait
        self.handle = None

    def __enter__(self):
        self.handle = open(self.path, "a+")
        end = time.time() + self.wait
        while True:
            try:
                fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return self.handle.fileno()
            except (IOError, OSError) as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
            if time.time() > end:
                raise Refused(
                    "One run at a time may change the environments, and another one has held %s for %d s. Wait until it "
                    "ends, or look for it: fuser -v %s" % (self.path, self.wait, self.path)
                )
            time.sleep(1)

    def __exit__(self, *_):
        self.handle.close()


def in_use(environment):
    """Process ids that run from the environment or have its libraries mapped."""
    prefix = os.path.realpath(environment) + os.sep
    found = []
    for pid in os.listdir("/proc"):
        if pid.isdigit() and int(pid) != os.getpid() and _touches("/proc/" + pid, prefix):
            found.append(int(pid))
    return sorted(found)


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
