#!/usr/bin/python
"""Start a program that goes on when the connection is lost, or ask how it ended."""

DOCUMENTATION = r"""{
"module": "detached_command",
"short_description": "Run a program in the background, once, with a record of its end",
"description": [
  "C(started) answers at once. A program that was started in this directory before is not started again, so who lost the connection may ask again.",
  "C(asked) tells how far it is. The action plugin of the same name asks until it ends.",
  "Only a recorded status says that it ended. One that was killed with the process that watches it, or by a restart of the host, is C(lost)."],
"options": {
  "directory": {"description": "Directory of this program alone that only root may write", "type": "path", "required": true},
  "argv": {"description": "The program and its arguments", "type": "list", "elements": "str"},
  "timeout": {"description": "Seconds for the program; then it is ended with its process group", "type": "int", "default": 1800},
  "state": {"description": "Whether to start it or to ask", "type": "str", "choices": ["started", "asked"], "default": "started"}
}}"""

RETURN = r"""
command_state: {description: "running, ended, lost (no status was recorded), or none", type: str, returned: always}
rc: {description: "Its exit status; none if it was ended at the limit", type: int, returned: when it ended}
lines: {description: The end of its output and error output, type: list, returned: when it ended}
"""

import json
import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import atomic_files, background, documented, environment_tree, processes
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, is_held

STATUS = "status.json"
LINES, LONGEST = 10, 300  # how much of the output is kept
SETTLING = 10  # seconds for who asks at the same moment to release the lock


def write(directory, **status):
    atomic_files.write_whole(os.path.join(directory, STATUS), json.dumps(status).encode("utf-8"))


def read(directory):
    return environment_tree.read_json(os.path.join(directory, STATUS)) or {"command_state": "none"}


def progress(directory):
    status = read(directory)
    if status["command_state"] == "running" and not is_held(directory):
        status = read(directory)  # it may have ended since it was read
        if status["command_state"] == "running":
            return {"command_state": "lost"}
    return status


def watch(directory, argv, seconds, sending):
    """The program and its end, as a process that nobody waits for."""
    with HostLock("running %s" % argv[0], SETTLING, directory):
        if read(directory)["command_state"] == "none":
            write(directory, command_state="running")
            os.write(sending, b"started")
            os.close(sending)
            answer = processes.run(argv, seconds)
            lines = [line[:LONGEST] for line in (answer.output + "\n" + answer.error).splitlines() if line.strip()]
            write(directory, command_state="ended", rc=answer.status, lines=lines[-LINES:])


def main():
    module = AnsibleModule(
        argument_spec=documented.options(DOCUMENTATION),
        required_if=[("state", "started", ["argv"])],
        supports_check_mode=True,
    )
    directory, argv, seconds = [module.params[name] for name in ("directory", "argv", "timeout")]
    changed = False
    if module.params["state"] == "started" and not module.check_mode and read(directory)["command_state"] == "none":
        changed = background.start(lambda sending: watch(directory, argv, seconds, sending)) == b"started"
    module.exit_json(changed=changed, **progress(directory))


if __name__ == "__main__":
    main()
