#!/usr/bin/python
"""Run yarn rmadmin on a host that has a ResourceManager, as its account and with its login."""

from __future__ import absolute_import, division, print_function

DOCUMENTATION = r"""
module: yarn_rmadmin
short_description: Run yarn rmadmin
description:
  - On a cluster with Kerberos the login is the ResourceManager's own, if yarn-site.xml names it here; else a ticket that the account has.
options:
  arguments: {description: Of yarn rmadmin, type: list, elements: str, required: true}
  conf_dir: {description: Directory of the ResourceManager's configuration, type: path, required: true}
  account: {description: 'An account that may do it, such as that of the ResourceManager', type: str, default: yarn}
  program: {description: "The program yarn, by name or path", type: str, default: yarn}
"""

RETURN = r"""
{}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import yarn_admin
from ansible.module_utils.hadoop_dl_host.kerberos_login import NoLogin


def main():
    module = AnsibleModule(
        argument_spec={
            "arguments": {"type": "list", "elements": "str", "required": True},
            "conf_dir": {"type": "path", "required": True},
            "account": {"type": "str", "default": "yarn"},
            "program": {"type": "str", "default": "yarn"},
        },
        supports_check_mode=True,
    )
    params = module.params
    if not module.check_mode:
        try:
            with yarn_admin.Admin(params["conf_dir"], params["account"], params["program"]) as admin:
                admin.rmadmin(*params["arguments"])
        except NoLogin as problem:
            module.fail_json(msg="For yarn rmadmin, %s." % problem)
        except yarn_admin.Failed as problem:
            module.fail_json(msg="%s. Run this again; it goes on from there." % problem)
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
