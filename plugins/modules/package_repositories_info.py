#!/usr/bin/python
"""List the enabled repositories of dnf or yum that no transaction of this project uses."""

DOCUMENTATION = r"""{
"module": "package_repositories_info",
"short_description": "List enabled repositories that do not check signatures, or that the site does not name",
"description": [
  "Asks dnf or yum itself, because C(gpgcheck) of a repository may come from its file, from the main configuration, or from a plugin.",
  "Changes nothing. Runs with the Python that has the bindings of dnf or yum, as Ansible's own modules for them do."],
"options": {
  "manager": {"description": "The host's package manager", "type": "str", "choices": ["dnf", "yum"], "required": true},
  "allowed": {"description": "The only repositories to use beside those of this project. Not set is all that check signatures", "type": "list", "elements": "str"}
}}"""

RETURN = r"""
unsigned:
  description: The enabled repositories with gpgcheck off, and those that are not allowed, as C(name) and C(file) (its definition; empty if a plugin made it)
  type: list
  returned: always
"""

import sys

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.respawn import has_respawned, probe_interpreters_for_module, respawn_module
from ansible.module_utils.hadoop_dl_host import documented

INTERPRETERS = ["/usr/libexec/platform-python", "/usr/bin/python3", "/usr/bin/python2", "/usr/bin/python"]


def enabled_in_dnf():
    """dnf's repositories, as a transaction sees them."""
    import dnf

    base = dnf.Base()
    try:
        base.conf.read()
        base.init_plugins()
        base.pre_configure_plugins()
        base.read_all_repos()
        base.configure_plugins()
        return list(base.repos.iter_enabled())
    finally:
        base.close()


def enabled_in_yum():
    """yum's repositories, as a transaction sees them."""
    import yum

    base = yum.YumBase()
    base.preconf.debuglevel = base.preconf.errorlevel = 0
    base.preconf.plugins = True
    return list(base.repos.listEnabled())


def unsigned(repositories, allowed=None):
    """Those that install packages without a check of their signature, and those that the site does not name, if it names some."""
    entries = [
        {"name": repository.id, "file": repository.repofile or ""}
        for repository in repositories
        if not repository.gpgcheck
        or not (allowed is None or repository.id in allowed or repository.id.startswith("deeplearning-"))
    ]
    return sorted(entries, key=lambda entry: entry["name"])


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    manager = module.params["manager"]
    try:
        repositories = {"dnf": enabled_in_dnf, "yum": enabled_in_yum}[manager]()
    except ImportError:
        interpreter = None if has_respawned() else probe_interpreters_for_module(INTERPRETERS, manager)
        if interpreter:
            respawn_module(interpreter)
        module.fail_json(
            msg="A Python with the bindings of %s is required to read the repositories, but neither %s nor %s has them. "
            "Install them (python3-dnf; on RHEL 7 yum has its own)."
            % (manager, sys.executable, ", ".join(INTERPRETERS))
        )
    except Exception as error:  # each manager raises its own kinds for a configuration that it cannot read
        module.fail_json(msg="%s must be able to read its repositories, but it reports: %s" % (manager, error))
    module.exit_json(changed=False, unsigned=unsigned(repositories, module.params["allowed"]))


if __name__ == "__main__":
    main()
