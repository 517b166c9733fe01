#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Remove packages with what came as their dependency and nobody else needs, and nothing more."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: packages_gone
short_description: Remove packages together with the dependencies that only they needed
description:
  - The modules of the package managers either leave dependencies behind or clean up the whole system.
  - With apt, what can be removed automatically before the removal stays; only what became so is removed too.
options:
  names: {description: Packages to remove; one that is not installed is none to remove, type: list, elements: str, required: true}
  alone: {description: Refuse where other installed packages need them; otherwise those go too, type: bool, default: false}
  manager: {description: The host's package manager, type: str, choices: [dnf, yum, apt], required: true}
"""

RETURN = r"""
removed: {description: Packages that were asked for and installed, type: list, returned: always}
dependencies: {description: Packages that nobody needed afterwards (apt), type: list, returned: always}
"""

import re

from ansible.module_utils.basic import AnsibleModule

REMOVE = {
    "dnf": ["dnf", "--assumeyes", "--quiet", "--setopt=clean_requirements_on_remove=true", "remove"],
    "yum": ["yum", "--assumeyes", "--quiet", "--setopt=clean_requirements_on_remove=1", "remove"],
    "apt": ["apt-get", "--assume-yes", "--quiet", "-o", "DPkg::Lock::Timeout=120", "purge"],
}
SIMULATE = ["apt-get", "--simulate", "--quiet", "purge"]
UNNEEDED = ["apt-get", "--simulate", "--quiet", "autoremove"]


def automatic(simulated):
    """Package names in what apt-get says it would remove, without their architecture."""
    return [name.split(":")[0] for name in re.findall(r"^(?:Remv|Purg) (\S+)", simulated, re.M)]


class Packages(object):
    def __init__(self, module, manager):
        self.module = module
        self.manager = manager

    def run(self, argv):
        status, output, error = self.module.run_command(
            argv, environ_update={"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
        )
        if status != 0:
            self.module.fail_json(
                msg="%s has to remove packages, and ended with status %d: %s. Solve what it names, and run this again."
                % (" ".join(argv), status, (error or output).strip()[-600:])
            )
        return output

    def installed(self, names):
        """Those of the names that are installed."""
        found = []
        for name in names:
            if self.manager == "apt":
                status, output, _ = self.module.run_command(["dpkg-query", "-W", "-f", "${db:Status-Status}", name])
                there = status == 0 and output.strip() in ("installed", "config-files", "half-installed", "unpacked")
            else:
                there = self.module.run_command(["rpm", "--quiet", "-q", name])[0] == 0
            found += [name] if there else []
        return found

    def needing(self, names):
        """Installed packages that need these, and would go with them."""
        if self.manager != "apt":
            _, output, error = self.module.run_command(
                ["rpm", "--erase", "--test"] + names, environ_update={"LC_ALL": "C"}
            )
            return sorted(set(re.findall(r"is needed by \(installed\) (\S+)", output + error)))
        known = set(names + automatic(self.run(UNNEEDED)))
        return [name for name in automatic(self.run(SIMULATE + names)) if name not in known]

    def remove(self, names):
        """Removes them; answers with the dependencies that went as well."""
        if self.manager != "apt":
            self.run(REMOVE[self.manager] + names)
            return []
        unneeded = automatic(self.run(UNNEEDED))
        self.run(REMOVE["apt"] + names)
        orphans = [name for name in automatic(self.run(UNNEEDED)) if name not in unneeded]
        if orphans:
            self.run(REMOVE["apt"] + orphans)
        return orphans


def main():
    module = AnsibleModule(
        argument_spec={
            "names": {"type": "list", "elements": "str", "required": True},
            "manager": {"type": "str", "choices": sorted(REMOVE), "required": True},
            "alone": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    packages = Packages(module, module.params["manager"])
    names = packages.installed(module.params["names"])
    needing = packages.needing(names) if names and module.params["alone"] else []
    if needing:
        module.fail_json(
            msg="%s has to be removed alone, and installed packages need it: %s. Nothing was removed. Remove those first, or keep asking "
            "for it, and run this again." % (", ".join(names), ", ".join(needing))
        )
    dependencies = packages.remove(names) if names and not module.check_mode else []
    module.exit_json(changed=bool(names), removed=names, dependencies=dependencies)


if __name__ == "__main__":
    main()
