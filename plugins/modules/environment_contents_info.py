#!/usr/bin/python
"""Tell what the active environment of a host consists of."""

DOCUMENTATION = r"""{
"module": "environment_contents_info",
"short_description": "Read the contents of a host's active environment",
"description": ["Reads the seal and the names of the installed packages, nothing else. A host without an active environment has empty answers."],
"options": {
  "root": {"description": "Directory that contains C(envs) and C(current)", "type": "path", "default": "/opt/deeplearning"}
}}"""

RETURN = r"""
environment: {description: Name of the active environment; empty without one, type: str, returned: always}
stack: {description: The stack that it was sealed as; empty without a seal, type: str, returned: always}
python: {description: Its Python's version; empty without one, type: str, returned: always}
packages: {description: Version of each package by its canonical name, type: dict, returned: always}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import documented, environment_tree
from ansible.module_utils.hadoop_dl_host import environment_history as history
from ansible.module_utils.hadoop_dl_host import environment_names as names
from ansible.module_utils.hadoop_dl_host import environment_packages as packages


def work(module):
    root = module.params["root"].rstrip("/")
    name = os.path.basename(history.current_of(root) or "")
    tree = names.live_tree(os.path.join(root, "envs", name)) if name else None
    place = packages.site_packages(tree) if tree else None
    return {
        "changed": False,
        "environment": name,
        "stack": (environment_tree.seal_of(tree) or {}).get("stack", "") if tree else "",
        "python": os.path.basename(os.path.dirname(place))[len("python") :] if place else "",
        "packages": dict(entry.split(" ", 1) for entry in packages.installed(tree)) if tree else {},
    }


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    packages.end_with_result(module, work, module.params["root"])


if __name__ == "__main__":
    main()
