#!/usr/bin/python
"""Run an installer while no other run of this project changes the host, within a time."""

DOCUMENTATION = r"""{
"module": "locked_command",
"short_description": "Run a program that changes the host, one run at a time",
"description": [
  "Takes the host's lock, which the program holds too, so that a run after a killed one waits until its installer ends.",
  "Unlike C(command) it has a time limit. It answers like C(command), and does nothing in check mode."],
"options": {
  "argv": {"description": "The program and its arguments", "type": "list", "elements": "str", "required": true},
  "purpose": {"description": "What a waiting run reads about it", "type": "str", "required": true},
  "directory": {"description": "Where the program runs", "type": "path", "default": "/"},
  "removes": {"description": "Run it only if this file exists", "type": "path"},
  "timeout": {"description": "Seconds for the program", "type": "int", "default": 7200},
  "wait": {"description": "Seconds for another run to end", "type": "int", "default": 600},
  "root": {"description": "Directory of the lock", "type": "path", "default": "/opt/deeplearning"},
  "foreign": {"description": ["Whether the program has foreign code. It cannot become another user, has no network, and of the user's home the root and what variables name alone.", "If the kernel grants users no namespaces, it cannot become another user, and a warning says so."], "type": "bool", "default": false},
  "environment": {"description": "Variables of the program; a parameter, because they may be secret", "type": "dict", "default": {}, "no_log": true}
}}"""

RETURN = r"""
cmd: {description: What was run, type: list, returned: always}
rc: {description: Its exit status; 124 if it was ended at the limit, type: int, returned: when it ran}
stdout: {description: Its output, type: str, returned: when it ran}
stderr: {description: Its error output, type: str, returned: when it ran}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import command_results, documented, processes, sandbox_user
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked


def secluded(module):
    """How the program leaves the user's rights; what the kernel refuses is a warning."""
    params = module.params
    names = [os.environ.get(name, "") for name in ("PATH", "JAVA_HOME", "CXX")]
    read = sandbox_user.named_in_homes(names + [str(value) for value in params["environment"].values()])
    prepare = sandbox_user.UserSandbox(params["root"], read)
    refusal = prepare.refusal()
    if not refusal:
        return prepare
    module.warn("%s The network and the files of the user were open to it: %s." % (refusal, params["purpose"]))
    return sandbox_user.WithoutSudo()


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    params = module.params
    command_results.use_environment(module)
    if params["removes"] and not os.path.exists(params["removes"]):
        module.exit_json(changed=False, cmd=params["argv"])
    if module.check_mode:
        module.exit_json(changed=True, cmd=params["argv"])
    try:
        with HostLock(params["purpose"], params["wait"], params["root"]) as lock:
            prepare = secluded(module) if params["foreign"] else None
            answer = processes.run(
                params["argv"], params["timeout"], lock=lock, directory=params["directory"], prepare=prepare
            )
    except HostLocked as problem:
        module.fail_json(msg=str(problem), cmd=params["argv"])
    except (IOError, OSError) as error:
        module.fail_json(msg="%s must be writable for the lock, but: %s" % (params["root"], error), cmd=params["argv"])
    command_results.end_with_answer(module, params["argv"], answer)


if __name__ == "__main__":
    main()
