#!/usr/bin/python
"""Run a program that cannot hold its host for ever: at the limit it is ended, with all it started, and named."""

DOCUMENTATION = r"""{
"module": "limited_command",
"short_description": "Run a program within a time",
"description": [
  "As C(ansible.builtin.command), which has no limit. A task's C(timeout) ends Ansible's wait, and leaves the program on the host.",
  "In check mode it does nothing, as C(command); its output is split into C(stdout_lines) by Ansible."],
"options": {
  "argv": {"description": "The program and its arguments", "type": "list", "elements": "str", "required": true},
  "timeout": {"description": "Seconds for the program", "type": "int", "default": 300},
  "user": {"description": "Account that runs it; without it the task's own", "type": "str"},
  "creates": {"description": "Run it only if this file does not exist", "type": "path"}
}}"""

RETURN = r"""
cmd: {description: What was run, type: list, returned: always}
rc: {description: "Its exit status; 124 if it was ended at the limit, 127 if it cannot be run", type: int, returned: always}
seconds: {description: How long it ran, type: float, returned: when it ran}
stdout: {description: Its output, type: str, returned: when it ran}
stderr: {description: "Its error output, and the sentence if it was ended or cannot be run", type: str, returned: when it ran}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import command_results, documented, processes


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    params = module.params
    if params["creates"] and os.path.exists(params["creates"]):
        module.exit_json(changed=False, cmd=params["argv"], rc=0)
    if module.check_mode:
        conditional = bool(params["creates"])
        module.exit_json(changed=conditional, skipped=not conditional, cmd=params["argv"], rc=0)
    start = processes.clock()
    try:
        answer = processes.run(params["argv"], params["timeout"], user=params["user"])
    except KeyError:
        module.fail_json(msg="user must be an account of this host, but is %s. Nothing was run" % params["user"])
    command_results.end_with_answer(module, params["argv"], answer, seconds=round(processes.clock() - start, 1))


if __name__ == "__main__":
    main()
