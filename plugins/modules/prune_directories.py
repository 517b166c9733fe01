#!/usr/bin/python
"""Remove directories that are empty; what somebody put into one stays, and so does the directory."""

DOCUMENTATION = r"""{
"module": "prune_directories",
"short_description": "Remove directories that nobody uses any more",
"description": [
  "Removes each directory if it is empty, in the order given, so that a parent can follow its children.",
  "One that has content, is missing, is a link or is a mount point is left unchanged; any other failure is reported."],
"options": {
  "paths": {"description": "Directories", "type": "list", "elements": "path", "required": true}
}}"""

RETURN = r"""
removed: {description: "Directories that were removed (in check mode, would be)", type: list, returned: always}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import documented, empty_directories


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    try:
        removed = empty_directories.remove(module.params["paths"], module.check_mode)
    except (IOError, OSError) as error:
        module.fail_json(msg="An empty directory cannot be removed: %s. Solve that, and run this again." % error)
    module.exit_json(changed=bool(removed), removed=removed)


if __name__ == "__main__":
    main()
