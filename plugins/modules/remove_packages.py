#!/usr/bin/python
"""Remove packages with what came as their dependency and nobody else needs, and nothing more."""

DOCUMENTATION = r"""{
"module": "remove_packages",
"short_description": "Remove packages together with the dependencies that only they needed",
"description": ["The modules of the package managers either leave dependencies behind or clean up the whole system."],
"options": {
  "names": {"description": "Packages to remove; one that is not installed is none to remove", "type": "list", "elements": "str", "required": true},
  "refuse_if_required": {"description": "Refuse if other installed packages need them; otherwise those go too", "type": "bool", "default": false},
  "manager": {"description": "The host's package manager", "type": "str", "choices": ["dnf", "yum"], "required": true}
}}"""

RETURN = r"""
removed: {description: Packages that were asked for and installed, type: list, returned: always}
"""

import os
import re
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import documented, package_locks, processes

ASK, CHANGE = 120, 3600  # seconds; a removal also writes initramfs images and builds modules of other kernels
LOCK_WAIT, LOCK_PAUSE = 120, 5  # seconds for another package manager
LOCKED = 200  # exit status of dnf and yum whose lock another process holds
REMOVE = ("--assumeyes", "--quiet", "--setopt=exit_on_lock=1", "--setopt=clean_requirements_on_remove=1", "remove")


def variables():
    return dict(os.environ, LC_ALL="C")


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
        return [name for name in names if self.ask(["rpm", "--quiet", "-q", name]).status == 0]

    def needing(self, names):
        """Installed packages that need these, and would go with them."""
        answer = self.ask(["rpm", "--erase", "--test"] + names)
        return sorted(set(re.findall(r"is needed by \(installed\) (\S+)", answer.output + answer.error)))

    def remove(self, names):
        self.run([self.manager] + list(REMOVE) + names)


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    packages = Packages(module.params["manager"])
    try:
        names = packages.installed(module.params["names"])
        needing = packages.needing(names) if names and module.params["refuse_if_required"] else []
        if needing:
            raise Refused(
                "%s must be removed alone, but installed packages need it: %s. Nothing was removed. Remove those first, or keep "
                "requesting it, and run again." % (", ".join(names), ", ".join(needing))
            )
        if names and not module.check_mode:
            packages.remove(names)
    except Refused as problem:
        module.fail_json(msg=str(problem))
    module.exit_json(changed=bool(names), removed=names)


if __name__ == "__main__":
    main()
