#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Install one component of a lock into an environment, from the mirror and by hash, so that an interrupted run heals."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: locked_packages
short_description: Install a lock's component into an environment, from a mirror, every file checked by sha256
description:
  - pip gets C(--require-hashes --no-index --no-deps), no configuration and no proxy; the mirror is its only source.
  - The component is complete when C(.deeplearning/<component>.json) says so; until then C(.deeplearning/<component>.started) stands there, and the next
    run installs it anew. A sealed environment is left alone. One that changed since it was sealed is opened and repaired.
options:
  environment: {description: Directory of the environment; it cannot be moved later, type: path, required: true}
  component: {description: Name of the component; C(pip) also makes the environment, type: str, required: true}
  lock: {description: The component's section of the lock, type: str, required: true}
  mirror_url: {description: Address of the mirror; wheels are under C(wheels/), type: str, required: true}
  mirror_ca: {description: CA bundle for a mirror with https, type: path}
  python: {description: Interpreter that the environment is made with; needed for the component C(pip), type: path}
  timeout: {description: Seconds after which pip is ended, and for which another run is waited for, type: int, default: 3600}
"""

EXAMPLES = r"""
- name: Install Keras
  locked_packages:
    environment: /opt/deeplearning/envs/tf1.15-py27-el7-0123456789ab
    component: keras
    lock: "{{ keras_lock }}"
    mirror_url: http://mirror1:8900
"""

RETURN = r"""
packages: {description: What was installed, as project and version, type: list, returned: always}
repaired: {description: Why a sealed environment was opened again, type: str, returned: when it was}
"""

import errno
import os
import re
import shutil
import time
import zipfile

from ansible.module_utils import environment_packages as packages
from ansible.module_utils import environment_tree
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.environment_packages import Refused
from ansible.module_utils.six.moves.http_client import HTTPException
from ansible.module_utils.six.moves.urllib.parse import unquote, urlsplit
from ansible.module_utils.urls import open_url

UNPACKED = 4  # a wheel and what it unpacks to take about so many times the wheel
TRIES = 3


def read_url(url, ca, sink=None):
    """The answer's bytes, or, with a sink, nothing: they are written to it."""
    for attempt in range(1, TRIES + 1):
        try:
            answer = open_url(url, use_proxy=False, timeout=60, ca_path=ca)
            try:
                if sink is None:
                    return answer.read()
                with open(sink, "wb") as handle:
                    shutil.copyfileobj(answer, handle)
                return None
            finally:
                answer.close()
        except (IOError, OSError, ValueError, HTTPException) as error:  # URLError and socket errors are among them
            code = getattr(error, "code", None)
            if attempt == TRIES or code in (401, 403, 404):
                raise Refused(
                    "The mirror is needed, and %s answers: %s. Check mirror_url, that the mirror host serves (systemctl "
                    "status deeplearning-mirror there) and that its port is open." % (url, error)
                )
            time.sleep(attempt)
    return None


def check_mirror(entries, url, ca):
    """Every file of the lock has to be on the mirror; all that are missing are said at once."""
    page = read_url(url, ca).decode("utf-8", "replace")
    held = set(unquote(link.rpartition("/")[2]) for link in re.findall(r'href="([^"#?]+)', page))
    missing = sorted(entry["file"] for entry in entries if entry["file"] and entry["file"] not in held)
    if missing:
        raise Refused(
            "%d files of the lock are needed, and %s lists %d files without %s. Fill the mirror: ansible-playbook site.yml "
            "--tags always,mirror" % (len(entries), url, len(held), ", ".join(missing))
        )


def check_space(entries, environment):
    needed = UNPACKED * sum(entry["size"] for entry in entries)
    status = os.statvfs(environment)
    free = status.f_bavail * status.f_frsize
    if needed > free:
        raise Refused(
            "About %d MB are needed in %s, and %d MB are free. Make room there (old environments: playbooks with "
            "environment_keep: 0), or mount a larger file system." % (needed // 10**6, environment, free // 10**6)
        )


def obtain(entry, url, ca, directory):
    """Download one file of the lock into a directory that only root can write to."""
    path = os.path.join(directory, entry["file"])
    read_url(url + entry["file"], ca, sink=path)
    found = packages.sha256_of(path)
    if found != entry["sha256"]:
        os.unlink(path)
        raise Refused(changed_bytes("%s (sha256 %s instead of %s)" % (entry["file"], found, entry["sha256"]), url))
    return path


def changed_bytes(what, url):
    return (
        "Every file has to have the sha256 of the lock, and the mirror %s holds other bytes: %s. Nothing of it was "
        "installed, and the active environment is as it was. Let the mirror check and fetch it again: ansible-playbook "
        "site.yml -e apply=all --tags always,mirror" % (url, what)
    )


class Installation(object):
    """One component in one environment."""

    def __init__(self, parameters):
        self.environment = parameters["environment"].rstrip("/")
        self.component = parameters["component"]
        self.section = parameters["lock"]
        self.url = parameters["mirror_url"].rstrip("/") + "/wheels/"
        self.ca = parameters["mirror_ca"]
        self.python = parameters["python"]
        self.timeout = parameters["timeout"]
        self.entries = packages.parse_section(self.section)
        self.digest = packages.lock_digest(self.section)
        self.scratch = packages.state_file(self.environment, "tmp")
        self.repaired = None
        if not self.entries:
            raise Refused(
                "The lock of the component %s is needed, and it is empty. Check the stack's lock." % self.component
            )

    def marker(self):
        return packages.read_json(packages.state_file(self.environment, self.component + ".json"))

    def complete(self):
        marker = self.marker()
        return bool(
            marker
            and marker.get("lock_sha256") == self.digest
            and not packages.missing_packages(self.environment, self.entries)
        )

    def needs(self):
        """None when there is nothing to do; else why."""
        if environment_tree.seal_of(self.environment) is None:
            return None if self.complete() else "not installed"
        problem = environment_tree.problem(self.environment)
        if problem:
            return problem
        if (self.marker() or {}).get("lock_sha256") != self.digest:
            raise Refused(
                "An environment never changes once it is sealed, and %s was sealed with another lock of %s. Give the new "
                "lock an environment of its own: its name holds the lock's digest." % (self.environment, self.component)
            )
        return None

    def unseal(self, reason):
        """Open a damaged environment: what does not belong goes, everything counts as interrupted."""
        self.repaired = reason
        os.unlink(packages.state_file(self.environment, "sealed.json"))
        try:
            strangers = environment_tree.changes(self.environment)[2]
        except (IOError, OSError, ValueError):
            strangers = []
        for name in strangers:
            os.unlink(os.path.join(self.environment.encode("utf-8"), name))
        for name in os.listdir(os.path.join(self.environment, environment_tree.STATE)):
            if name.endswith(".json"):
                path = packages.state_file(self.environment, name)
                os.rename(path, path[: -len(".json")] + ".started")

    def interrupted(self):
        return os.path.exists(packages.state_file(self.environment, self.component + ".started"))

    def install(self, descriptor):
        again = self.interrupted()
        if self.component == "pip":
            if not (again and self.made()):
                self.make_room()
        elif not self.made():
            raise Refused(
                "The environment %s is needed, and its Python does not run. Run the role pip first, or remove the "
                "directory and run the playbook again." % self.environment
            )
        for directory in (self.environment, os.path.dirname(self.scratch)):
            if not os.path.isdir(directory):
                os.makedirs(directory, 0o755)
        packages.write_whole(packages.state_file(self.environment, self.component + ".started"), b"")
        shutil.rmtree(self.scratch, ignore_errors=True)
        os.mkdir(self.scratch, 0o700)
        try:
            check_mirror(self.entries, self.url, self.ca)
            check_space(self.entries, self.environment)
            self.run_pip(self.bootstrap() if self.component == "pip" else ["-m", "pip"], again, descriptor)
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)
        wrong = packages.missing_packages(self.environment, self.entries)
        if wrong:
            raise Refused(
                "pip ended well, and yet %s. Look at %s, then run the playbook again."
                % ("; ".join(wrong), self.environment)
            )
        packages.write_json(
            packages.state_file(self.environment, self.component + ".json"),
            {"component": self.component, "lock_sha256": self.digest},
        )
        os.unlink(packages.state_file(self.environment, self.component + ".started"))

    def made(self):
        """Was the environment made to the end, and does its Python run?"""
        if not os.path.exists(packages.state_file(self.environment, "made")) or not packages.site_packages(
            self.environment
        ):
            return False
        return self.python_works()

    def python_works(self):
        python = os.path.join(self.environment, "bin", "python")
        if not os.path.exists(python):
            return False
        return packages.run([python, "-c", "import ssl, zlib"], 60, packages.clean_variables())[0] == 0

    def make_room(self):
        """Begin from an empty directory; only what an earlier run of this module left there is removed."""
        if not os.path.isdir(self.environment):
            return
        if os.listdir(self.environment) and not os.path.isdir(os.path.dirname(self.scratch)):
            raise Refused(
                "%s is needed for the environment, and something else is there. Move it away, then run the playbook again."
                % self.environment
            )
        shutil.rmtree(self.environment)

    def bootstrap(self):
        """Make the environment; returns how its first pip is called: straight from the wheel."""
        known = dict((entry["project"], entry) for entry in self.entries)
        if not self.python or "pip" not in known:
            raise Refused(
                "The component pip needs `python` and a lock with pip. Check pip_python and the stack's lock."
            )
        variables = packages.clean_variables(TMPDIR=self.scratch)
        if "virtualenv" in known:
            wheel = obtain(known["virtualenv"], self.url, self.ca, self.scratch)
            unpacked = os.path.join(self.scratch, "virtualenv")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(unpacked)  # noqa: S202  (its sha256 was just compared with the lock's)
            command = [self.python, os.path.join(unpacked, "virtualenv.py"), "--no-download"]
            command += ["--no-pip", "--no-setuptools", "--no-wheel", self.environment]
        else:
            command = [self.python, "-m", "venv", "--without-pip", self.environment]
        if not self.made():
            status, output = packages.run(command, 300, variables)
            if status != 0 or not self.python_works():
                raise Refused(
                    "An environment made with %s is needed, and that ended with %s: %s. Check that interpreter (its "
                    "standard library has to be complete)." % (self.python, status, output.strip()[-500:])
                )
            packages.write_whole(packages.state_file(self.environment, "made"), b"")
        return [obtain(known["pip"], self.url, self.ca, self.scratch) + "/pip"]

    def run_pip(self, pip, again, descriptor):
        requirements = os.path.join(self.scratch, "requirements.txt")
        wanted = [entry for entry in self.entries if entry["project"] not in packages.TOOLS]
        packages.write_whole(requirements, "".join(entry["line"] + "\n" for entry in wanted).encode("utf-8"))
        directory = packages.site_packages(self.environment)
        for name in os.listdir(directory):
            if name.startswith("~"):  # pip moves what it replaces there; a killed pip leaves it
                shutil.rmtree(os.path.join(directory, name))
        parts = urlsplit(self.url)
        command = [os.path.join(self.environment, "bin", "python")] + pip
        command += ["install", "--isolated", "--no-deps", "--require-hashes", "--no-index", "--find-links", self.url]
        command += ["--no-cache-dir", "--disable-pip-version-check", "--no-input", "--no-warn-script-location"]
        command += ["--progress-bar", "off", "--timeout", "60", "--retries", "2"]
        command += ["--trusted-host", parts.netloc.rpartition("@")[2]] if parts.scheme == "http" else []
        command += ["--cert", self.ca] if self.ca else []
        command += ["--no-build-isolation"] if self.component != "pip" else []
        command += ["--force-reinstall"] if again else []
        status, output = packages.run(
            command + ["-r", requirements],
            self.timeout,
            packages.clean_variables(TMPDIR=self.scratch),
            inherit=descriptor,
        )
        if status is None:
            raise Refused(
                "pip has to end within %d s, and did not. Its last words: %s. Check the mirror's speed, then run the "
                "playbook again." % (self.timeout, last_words(output))
            )
        if status != 0:
            raise Refused(pip_problem(output, self.url, self.environment))


def last_words(output):
    said = [line for line in output.splitlines() if line.strip() and not line.startswith("DEPRECATION")]
    return " | ".join(said[-6:])


def pip_problem(output, url, environment):
    """pip's output as what is needed, what was found and what to do."""
    if "DO NOT MATCH THE HASHES" in output or "Expected sha256" in output:
        names = re.findall(r"^\s*(\S+==\S+|\S+) from (\S+?)(?:#\S*)?(?: \(.*)?:\s*$", output, re.M)
        pairs = zip(re.findall(r"Expected sha256 (\w+)", output), re.findall(r"Got\s+(\w+)", output))
        hashes = "; ".join("expected %s, got %s" % pair for pair in pairs)
        return changed_bytes(", ".join(name for name, _ in names) + " (" + hashes + ")", url)
    if "No space left on device" in output:
        return "The file system of %s is full. Make room there, then run the playbook again: it heals." % environment
    if "not a supported wheel" in output or "No matching distribution" in output:
        return (
            "A file that fits this host's Python is needed, and pip takes none of the lock's: %s. Check that the lock was "
            "made for this Python." % last_words(output)
        )
    return "pip could not install the lock's files: %s. Run the playbook again once that is corrected." % last_words(
        output
    )


def difference(installation, reason):
    there = packages.installed(installation.environment)
    before = ["%s %s\n" % (name, version) for name, (version, _) in sorted(there.items())]
    wanted = dict(
        (entry["project"], entry["version"]) for entry in installation.entries if entry["project"] not in packages.TOOLS
    )
    merged = dict((name, version) for name, (version, _) in there.items())
    merged.update(wanted)
    return {
        "before_header": "%s (%s)" % (installation.environment, reason),
        "after_header": "%s, %s" % (installation.environment, installation.component),
        "before": "".join(before),
        "after": "".join("%s %s\n" % item for item in sorted(merged.items())),
    }


def work(module):
    installation = Installation(module.params)
    names = [
        "%(project)s %(version)s" % entry for entry in installation.entries if entry["project"] not in packages.TOOLS
    ]
    result = {"changed": False, "packages": names}
    reason = installation.needs()
    if reason is None:
        return result
    result.update(changed=True, diff=difference(installation, reason))
    if module.check_mode:
        return result
    os.umask(0o022)
    parent = os.path.dirname(installation.environment)
    if not os.path.isdir(parent):
        os.makedirs(parent, 0o755)
    with packages.Turn(parent, installation.timeout) as descriptor:
        reason = installation.needs()  # another run may have done it meanwhile
        if reason is None:
            return {"changed": False, "packages": names}
        if environment_tree.seal_of(installation.environment) is not None:
            installation.unseal(reason)
        installation.install(descriptor)
    if installation.repaired:
        result["repaired"] = installation.repaired
    return result


def main():
    module = AnsibleModule(
        argument_spec={
            "environment": {"type": "path", "required": True},
            "component": {"type": "str", "required": True},
            "lock": {"type": "str", "required": True},
            "mirror_url": {"type": "str", "required": True},
            "mirror_ca": {"type": "path"},
            "python": {"type": "path"},
            "timeout": {"type": "int", "default": 3600},
        },
        supports_check_mode=True,
    )
    try:
        result = work(module)
    except Refused as problem:
        module.fail_json(msg=str(problem))
    except (IOError, OSError) as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            raise
        module.fail_json(
            msg="%s has to be writable and have room, and the system says: %s. Correct that, then run the playbook again: "
            "it heals." % (module.params["environment"], error)
        )
    module.exit_json(**result)


if __name__ == "__main__":
    main()
