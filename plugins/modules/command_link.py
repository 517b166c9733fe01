#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Let every shell find a program of this project, by a link in /usr/local/bin."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: command_link
short_description: Let every shell find a program, by a link in a directory of PATH
description:
  - Creates the link C(directory)/C(name of the program). Whatever else has that name is not managed by this project, so it is refused and left unchanged.
  - With C(state=absent) the link is removed, but only if it points to this program.
options:
  program: {description: Path of the program, type: path, required: true}
  directory: {description: A directory that is in the PATH of login shells, type: path, default: /usr/local/bin}
  state: {description: Whether the link must exist, type: str, choices: [present, absent], default: present}
"""

EXAMPLES = r"""
- name: Let every shell find tfos-submit
  command_link:
    program: /opt/deeplearning/bin/tfos-submit
"""

RETURN = r"""
link: {description: Path of the link, type: str, returned: always}
"""

import os

from ansible.module_utils.basic import AnsibleModule


def occupant(link):
    """What has the link's name: the target of a link, "a file" or "a directory"; None if nothing has it."""
    if os.path.islink(link):
        return "a link to " + os.readlink(link)
    if not os.path.lexists(link):
        return None
    return "a directory" if os.path.isdir(link) else "a file"


def main():
    module = AnsibleModule(
        argument_spec={
            "program": {"type": "path", "required": True},
            "directory": {"type": "path", "default": "/usr/local/bin"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    program, present = module.params["program"], module.params["state"] == "present"
    link = os.path.join(module.params["directory"], os.path.basename(program))
    description, own_description = occupant(link), "a link to " + program
    if present and description not in (None, own_description):
        module.fail_json(
            msg="%s must be %s but is %s, which this project did not create. Nothing was changed. Remove or rename it, and run this again."
            % (link, own_description, description)
        )
    changed = (description is None) if present else (description == own_description)
    if changed and not module.check_mode:
        try:
            if present:
                os.symlink(program, link)
            else:
                os.unlink(link)
        except (IOError, OSError) as error:
            module.fail_json(
                msg="%s cannot be %s: %s. Solve that, and run this again."
                % (link, "created" if present else "removed", error.strerror)
            )
    module.exit_json(changed=changed, link=link)


if __name__ == "__main__":
    main()
