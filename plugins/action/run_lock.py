"""Lock or unlock a host for this run of the playbooks. The lock of a run that has ended on this machine is taken over, with a warning.

The work is in lib/hadoop_dl/hosts/runs.py.
"""

import os
from pathlib import Path
from typing import Any

from ansible import context
from ansible.errors import AnsibleActionFail
from ansible.module_utils.hadoop_dl_host.host_lock import machine
from ansible.plugins.loader import callback_loader
from ansible.utils.display import Display

from hadoop_dl.hosts import runs
from hadoop_dl.hosts.actions import HostAction

display = Display()
REPOSITORY = Path(__file__).resolve().parents[2]


class ActionModule(HostAction):
    """run_lock: `state` (taken, released), `root`, `note` (what a run that follows a killed one must know), `takeover` (also
    from a run that may still be alive).

    Returns `refused`, a sentence if another run has the host, `controller`, whether the host is the machine that runs Ansible, and `held`, whether this
    run has it now.
    """

    REQUIRED = ("state", "root")
    OPTIONAL = ("note", "takeover")

    def act(self) -> dict[str, Any]:
        if self.args["state"] == "taken" and not callback_loader.has_plugin("run_lock"):
            raise AnsibleActionFail(
                "The callback plugin run_lock must be loaded, because it releases the locks of this run if it fails, but Ansible "
                f"does not find it. No host was changed. Add {REPOSITORY / 'plugins' / 'callback'} to callback_plugins in ansible.cfg, or to the "
                "variable ANSIBLE_CALLBACK_PLUGINS if that is set."
            )
        playbook = Path(str((context.CLIARGS.get("args") or ["a playbook"])[0])).name
        pid = os.getppid()  # every task runs in a child of the run's main process
        own = runs.this_run(pid, playbook, str(self.args.get("note") or ""))
        answer = self.lock(own)
        other_run = holder(answer)
        if other_run and self.args["state"] == "taken":
            ended = runs.has_ended(other_run)
            if ended or self.args.get("takeover"):
                why = f"process {runs.short(other_run.get('pid'))} is gone" if ended else "as requested"
                display.warning(f"{self.host}: the lock of {runs.told(other_run)} is taken over: {why}.")
                answer = self.lock(own, replace=str(other_run["id"]))
                other_run = holder(answer)
        return {
            "refused": runs.told(other_run) if other_run else "",
            "controller": bool(machine()) and answer.get("machine") == machine(),
            "held": answer.get("held") is True,
        }

    def lock(self, own: dict[str, str], replace: str = "") -> dict[str, Any]:
        return self.module("run_lock", state=self.args["state"], root=self.args["root"], run=own, replace=replace)


def holder(answer: dict[str, Any]) -> dict[str, Any]:
    """The other run that has the host; a record that cannot be read is of an unidentified run."""
    record = answer.get("holder") or {}
    return record if isinstance(record, dict) else {"id": "unknown"}
