"""Run a program that continues on the host if the connection is lost, and follow it to its recorded end.

The work is in module detached_command.
"""

import time
from typing import Any

from ansible.errors import AnsibleActionFail

from hadoop_dl.data.terminal import printable
from hadoop_dl.hosts.actions import HostAction

POLL = (0.5, 5)  # seconds between two questions: at first, and at most
PATIENCE = 300  # seconds for a host that cannot be reached while its program continues


class ActionModule(HostAction):
    """detached_command: argv, directory, timeout. It succeeds if the program's recorded status is 0, and in no other case."""

    REQUIRED = ("argv", "directory", "timeout")

    def act(self) -> dict[str, Any]:
        directory, seconds = self.args["directory"], int(self.args["timeout"])
        pause, longest = POLL
        end = time.monotonic() + seconds + PATIENCE
        answer = self.asked(directory=directory, argv=self.args["argv"], timeout=seconds, state="started")
        while answer["command_state"] == "running" and time.monotonic() < end:
            time.sleep(pause)
            pause = min(2 * pause, longest)
            answer = self.asked(directory=directory, state="asked")
        if answer["command_state"] != "ended":
            raise AnsibleActionFail(
                f"The program must end on {self.host} with a recorded status, but it is {answer['command_state']}: it was killed, the host was "
                "restarted, or it could not be ended."
            )
        if answer.get("rc") != 0:
            outcome = f"with status {answer['rc']}" if answer.get("rc") is not None else f"not within {seconds} s"
            output = " ".join(printable(str(line)) for line in answer.get("lines") or [])
            raise AnsibleActionFail(f"The program on {self.host} ended {outcome}: {output or 'no output'}")
        return {"rc": 0}

    def asked(self, **args: Any) -> dict[str, Any]:
        """The module's answer. A lost connection does not end the program, so the module runs again."""
        return self.ask_again("detached_command", PATIENCE, POLL[1], "Its program continues until its limit", **args)
