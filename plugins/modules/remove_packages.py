#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Remove packages with what came as their dependency and nobody else needs, and nothing more."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: remove_packages
short_description: Remove packages together with the dependencies that only they needed
description:
  - The modules of the package managers either leave dependencies behind or clean up the whole system.
  - With apt, what can be removed automatically before the removal stays; only what becomes so is removed too.
options:
  names: {description: Packages to remove; one that is not installed is none to remove, type: list, elements: str, required: true}
  refuse_if_required: {description: Refuse if other installed packages need them; otherwise those go too, type: bool, default: false}
  manager: {description: The host's package manager, type: str, choices: [dnf, yum, apt], required: true}
"""

RETURN = r"""
removed: {description: Packages that were asked for and installed, type: list, returned: always}
dependencies: {description: Packages that nobody else needed (apt), type: list, returned: always}
"""

import os
import re
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import package_locks, processes

ASK, CHANGE = 120, 3600  # seconds; a removal also writes initramfs images and builds modules of other kernels
LOCK_WAIT, LOCK_PAUSE = 120, 5  # seconds for another package manager
LOCKED = 200  # exit status of dnf and yum whose lock another process holds
REMOVE = {
    "dnf": [
        "dnf",
        "--assumeyes",
        "--quiet",
        "--setopt=exit_on_lock=true",
        "--setopt=clean_requirements_on_remove=true",
        "remove",
    ],
    "yum": [
        "yum",
        "--assumeyes",
        "--quiet",
        "--setopt=exit_on_lock=1",
        "--setopt=clean_requirements_on_remove=1",
        "remove",
    ],
    "apt": ["apt-get", "--assume-yes", "--quiet", "-o", "DPkg::Lock::Timeout=120", "purge"],
}
SIMULATE = ["apt-get", "--simulate", "--quiet", "purge"]
UNNEEDED = ["apt-get", "--simulate", "--quiet", "autoremove"]


def automatic(simulated):
    """Package names in what apt-get says it would remove, without their architecture."""
    return [name.split(":")[0] for name in re.findall(r"^(?:Remv|Purg) (\S+)", simulated, re.M)]


def variables():
    return dict(os.environ, LC_ALL="C", DEBIAN_FRONTEND="noninteractive")


class Refused(Exception):
    """Why nothing more was removed."""


class Packages(object):
    def __init__(self, manager, run=processes.run):
        self.manager = manager
        self.execute = run

    def ask(self, argv):
        """What a program answers that changes nothing."""
        return self.answered(self.execute(argv, ASK, variables()))

    def run(self, argv):
        """The output of a program that may need the package manager's lock, and must succeed."""
        end = processes.clock() + LOCK_WAIT
        answer = self.answered(self.execute(argv, CHANGE, variables()))
        holder = self.holder(answer)
        while holder and processes.clock() < end:
            time.sleep(LOCK_PAUSE)
            answer = self.answered(self.execute(argv, CHANGE, variables()))
            holder = self.holder(answer)
        if holder:
            raise Refused(
                "%s must be able to lock the packages, but another package manager has held the lock for %d s: %s. Nothing was "
                "removed. Wait until it ends, and run again." % (argv[0], LOCK_WAIT, holder)
            )
        if answer.status != 0:
            raise Refused(
                "%s must remove packages, but ended with status %d: %s. Solve what it names, and run again."
                % (" ".join(argv), answer.status, (answer.error or answer.output)[-600:])
            )
        return answer.output

    def holder(self, answer):
        """Who holds the lock that stopped the program; empty if none did. dnf and yum name the holder of their own lock only."""
        if answer.status == LOCKED:
            return (answer.error or answer.output)[-600:] or "it does not name them"
        return package_locks.holder() if answer.status != 0 else ""

    def answered(self, answer):
        if answer.late:
            raise Refused(
                "The package manager must answer, but %s. Look for what holds it (ps -eo pid,stat,args), end that, and run again."
                % answer.problem
            )
        return answer

    def installed(self, names):
        """Those of the names that are installed."""
        installed_names = []
        for name in names:
            if self.manager == "apt":
                answer = self.ask(["dpkg-query", "-W", "-f", "${db:Status-Status}", name])
                states = ("installed", "config-files", "half-installed", "unpacked")
                is_installed = answer.status == 0 and answer.output in states
            else:
                is_installed = self.ask(["rpm", "--quiet", "-q", name]).status == 0
            installed_names += [name] if is_installed else []
        return installed_names

    def needing(self, names):
        """Installed packages that need these, and would go with them."""
        if self.manager != "apt":
            answer = self.ask(["rpm", "--erase", "--test"] + names)
            return sorted(set(re.findall(r"is needed by \(installed\) (\S+)", answer.output + answer.error)))
        known_names = set(names + automatic(self.run(UNNEEDED)))
        return [name for name in automatic(self.run(SIMULATE + names)) if name not in known_names]

    def remove(self, names):
        """Removes them; answers with the dependencies that went as well."""
        if self.manager != "apt":
            self.run(REMOVE[self.manager] + names)
            return []
        targets = set(names + automatic(self.run(UNNEEDED)) + automatic(self.run(SIMULATE + names)))
        orphans = [name for name in automatic(self.run(SIMULATE + ["--auto-remove"] + names)) if name not in targets]
        # One transaction, which ends also if this module is killed. After two, a killed one's orphans would be some that were unneeded before.
        self.run(REMOVE["apt"] + names + orphans)
        return orphans


def main():
    module = AnsibleModule(
        argument_spec={
            "names": {"type": "list", "elements": "str", "required": True},
            "manager": {"type": "str", "choices": sorted(REMOVE), "required": True},
            "refuse_if_required": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    packages = Packages(module.params["manager"])
    dependencies = []
    try:
        names = packages.installed(module.params["names"])
        needing = packages.needing(names) if names and module.params["refuse_if_required"] else []
        if needing:
            raise Refused(
                "%s must be removed alone, but installed packages need it: %s. Nothing was removed. Remove those first, or keep "
                "requesting it, and run again." % (", ".join(names), ", ".join(needing))
            )
        if names and not module.check_mode:
            dependencies = packages.remove(names)
    except Refused as problem:
        module.fail_json(msg=str(problem))
    module.exit_json(changed=bool(names), removed=names, dependencies=dependencies)


if __name__ == "__main__":
    main()
