#!/usr/bin/python
"""Check that a host can log in to Kerberos."""

DOCUMENTATION = r"""{
"module": "hadoop_login_info",
"short_description": "Check that this host can log in to a Hadoop cluster with Kerberos",
"description": ["Gets a ticket into a cache of its own and destroys it, so that a login that does not work is known before the first change."],
"options": {
  "principal": {"description": "Who logs in", "type": "str", "required": true},
  "keytab": {"description": "File of this host with its keys", "type": "path", "required": true, "no_log": false}
}}"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import documented, kerberos_login


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    try:
        with kerberos_login.logged_in(module.params["principal"], module.params["keytab"]):
            pass
    except kerberos_login.NoLogin as failure:
        module.fail_json(msg="Before the first change, %s. No host was changed." % failure)
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
