#!/usr/bin/python
"""Make a set of RPM packages in a mirror's directory: named ones with what they require, each signed. Needs Python 3.6 or later."""

DOCUMENTATION = r"""{
"module": "mirror_packages",
"short_description": "Fetch named RPM packages with what they require from signed repositories into a repository of the mirror",
"description": [
  "dnf reads the repositories as they are given, of whatever release; what this machine has itself is neither asked nor changed.",
  "Every package must be signed by one of the keys. The set is complete before it takes the older one's place. Proxies are those of the environment."],
"options": {
  "root": {"description": "The mirror's directory", "type": "path", "required": true},
  "name": {"description": "Name of the set; it is served below C(rpm/)I(name)", "type": "str", "required": true},
  "packages": {"description": "Names of packages, with the version if not the newest one is wanted; C(A|B) for the first of two that there is", "type": "list", "elements": "str", "required": true},
  "repositories": {"description": "Addresses of the repositories", "type": "list", "elements": "str", "required": true},
  "key": {"description": "Text of the public keys that sign their packages", "type": "str", "required": true, "no_log": false},
  "timeout": {"description": "Seconds for all of it", "type": "int", "default": 10800}
}}"""

RETURN = r"""
reason: {description: Why the set was made; empty if it was there, type: str, returned: always}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import documented, mirror_index, package_sets, replaced_directory

GRACE = 60  # seconds beside the limit, for programs that have one of their own
LATE = (
    "The package set %s must be complete within %d s, but a repository had not delivered what was asked. Check the network and the repositories, "
    "then run the same command again."
)


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION))
    os.umask(0o022)
    params = module.params
    try:
        maker = package_sets.Maker(*(params[name] for name in ("root", "name", "packages", "repositories", "key")))
        replaced_directory.recover(maker.place, maker.old)
        reason, seconds = maker.reason(), params["timeout"]
        if reason:
            mirror_index.within(seconds + GRACE, lambda: maker.make(seconds), LATE % (params["name"], seconds))
    except mirror_index.MirrorError as problem:
        module.fail_json(msg="%s The older set was not changed." % problem)
    module.exit_json(changed=bool(reason), reason=reason)


if __name__ == "__main__":
    main()
