"""Start the build of TensorFlow's wheel, or follow the one that runs, with its progress on one line.

The work is in module tensorflow_build.
"""

import sys
import time
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.utils.display import Display

from hadoop_dl.data import built
from hadoop_dl.data.terminal import printable
from hadoop_dl.hosts.actions import HostAction

display = Display()
POLL = 5  # seconds between two questions
LINE = 60  # seconds between two lines if there is no terminal
PATIENCE = 900  # seconds for a host that cannot be reached while its build continues


class ActionModule(HostAction):
    """tensorflow_build: root, key, spec; answers with the wheel's provenance, or fails with the build's sentence."""

    REQUIRED = ("root", "key", "spec")

    def act(self) -> dict[str, Any]:
        root, key = self.args["root"], self.args["key"]
        answer = self.module("tensorflow_build", root=root, key=key, spec=self.args["spec"], state="started")
        if self.checking:
            return {"provenance": self.provenance(answer) if answer.get("provenance") else {}}
        if self.changed:
            display.display(f"{self.host}: the build continues without this run; its log is {answer.get('log', root)}")
        display_time = 0.0
        while answer["build_state"] == "running":
            time.sleep(POLL)
            answer = self.asked(root, key)
            display_time = self.show(answer, display_time)
        if display_time < 0:
            display.display("", screen_only=True)  # the line that was written over is complete
        if answer["build_state"] != "done":
            raise AnsibleActionFail(f"No wheel was built on {self.host}. {self.reason(answer)}")
        return {"provenance": self.provenance(answer)}

    def provenance(self, answer: dict[str, Any]) -> dict[str, Any]:
        """What the host answered of the wheel, in its form: its name becomes a path on the controller and on the mirror."""
        provenance = built.of_host(answer.get("provenance"), self.args["spec"]["provenance"], str(self.args["key"]))
        if provenance is None:
            raise AnsibleActionFail(
                f"{self.host} must answer what wheel it built (name, sha256, size), but its answer is malformed. Nothing was fetched. "
                f"Look at published/{self.args['key']}/provenance.json below {self.args['root']}; without that directory the wheel is built again."
            )
        return provenance

    def asked(self, root: str, key: str) -> dict[str, Any]:
        """How far it is. A lost connection does not end the build, so the module runs again."""
        goes_on = "Its build continues; the same command follows it again"
        return self.ask_again("tensorflow_build", PATIENCE, POLL, goes_on, root=root, key=key, state="asked")

    def reason(self, answer: dict[str, Any]) -> str:
        if answer["build_state"] == "failed":
            return printable(str(answer["message"]))
        return f"It was stopped in the step {answer['step'] or 'source'}, by a reboot or a kill. Run the same command again: compiled files are kept."

    def show(self, answer: dict[str, Any], display_time: float) -> float:
        """Show one line that is overwritten; without a terminal, a line every LINE seconds."""
        actions = answer.get("actions") or []
        count = f" {actions[0]} of {actions[1]} actions" if actions else ""
        text = f"{self.host}: TensorFlow {self.args['spec']['version']}: {answer['step']}{count}"
        if sys.stdout.isatty():
            display.display(f"\r{text:<100}", newline=False, screen_only=True)
            return -1.0
        if time.monotonic() - display_time < LINE:
            return display_time
        display.display(text)
        return time.monotonic()
