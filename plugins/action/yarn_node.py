"""Decide about a host's NodeManager, and wait for it, on a ResourceManager's host (delegate_to).

The work is in lib/hadoop_dl/data/yarn_nodes.py.
"""

import time
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.utils.display import Display

from hadoop_dl.data import yarn_nodes
from hadoop_dl.hosts.actions import HostAction

POLL = 10  # seconds between two questions
PATIENCE = 120  # seconds for a ResourceManager that does not answer meanwhile
GRACE = 120  # seconds after the limit, in which YARN ends what still runs
REPEAT = 300  # seconds after which an unchanged line is shown again
STATES = ("known", "drainable", "drained", "returnable", "running", "rebootable", "occupied")


class ActionModule(HostAction):
    """yarn_node: `state` known (read), drainable, returnable or rebootable (checked, nothing changes), drained or running (waited for, at most `seconds`).
    occupied answers `occupants`: what runs on the host, in words.

    `node` is the node's name in YARN if the inventory has another one. Returns `node` (name, state, gpus, recorded) and `refresh`, whether YARN
    must read its file of excluded nodes again, `managed`, whether only a manager may change that file. `together`: hosts of the inventory that
    leave at the same time. `early`: before a rollout, in which hosts that are out come back before this one leaves.
    """

    REQUIRED = ("state", "conf_dir")
    OPTIONAL = ("node", "record", "seconds", "together", "early")

    def act(self) -> dict[str, Any]:
        state = str(self.args["state"])
        if state not in STATES:
            self.misused(f"a state of {', '.join(STATES)}")
        try:
            if state in ("drained", "running"):
                yarn = self.wait(state, float(self.args.get("seconds") or 0))
            else:
                yarn = self.checked(state)
            if state == "rebootable":
                return {}
            if state == "occupied":
                return {"occupants": yarn_nodes.occupants(yarn)}
            node = yarn_nodes.node_of(self.host, yarn)
        except yarn_nodes.Refused as problem:
            raise AnsibleActionFail(str(problem)) from None
        summary = {name: getattr(node, name) for name in ("name", "state", "gpus", "recorded")}
        end_states = yarn_nodes.LEAVES if state in ("drainable", "drained") else ("RUNNING",)
        return {"node": summary, "refresh": node.state not in end_states, "managed": bool(yarn.manager)}

    def checked(self, state: str) -> yarn_nodes.Yarn:
        yarn, problem, early = self.ask(applications=state == "occupied"), None, bool(self.args.get("early"))
        if state == "drainable":
            problem = yarn_nodes.drain_problem(self.host, yarn, early=early)
        elif state == "rebootable":
            problem = yarn_nodes.reboot_problem(self.host, yarn, 1 + len(self.beside()), early=early)
        elif state == "returnable":
            problem = yarn_nodes.return_problem(self.host, yarn)
        if problem:
            raise yarn_nodes.Refused(problem)
        return yarn

    def wait(self, state: str, seconds: float) -> yarn_nodes.Yarn:
        """Until the node is in this state. In check mode it has not been asked to go there."""
        start = time.monotonic()
        end = start + seconds + (GRACE if state == "drained" else 0)
        last_text, when, answer_time = "", 0.0, start
        while True:
            try:
                yarn = self.ask(applications=state == "drained")
            except AnsibleActionFail:
                if time.monotonic() - answer_time > PATIENCE:
                    raise
                time.sleep(POLL)
                continue
            answer_time = time.monotonic()
            node = yarn_nodes.node_of(self.host, yarn)
            at_goal = yarn_nodes.is_drained(node) if state == "drained" else yarn_nodes.is_back(node)
            now = time.monotonic()
            if at_goal or self.checking:
                if last_text and now >= start + seconds:
                    Display().warning(
                        f"{self.host}: YARN ended what still ran after {seconds:g} s. Last seen: {last_text}"
                    )
                return yarn
            if now >= end:
                raise yarn_nodes.Refused(self.late(state, node, seconds))
            line = yarn_nodes.waiting(self.host, yarn, start + seconds - now) if state == "drained" else ""
            text = line.rpartition(";")[0]
            if line and (text != last_text or now - when >= REPEAT):
                Display().display(line)
                last_text, when = text, now
            time.sleep(min(POLL, end - now, max(1.0, seconds / 20)))

    def late(self, state: str, node: yarn_nodes.Node, seconds: float) -> str:
        if state == "drained":
            return (
                f"YARN must end the containers of {self.host} {seconds:g} s after the refresh, but has it as {node.state} with {node.containers}. "
                "Look at the ResourceManager's log."
            )
        return f"The NodeManager of {self.host} must run again within {seconds:g} s, but {yarn_nodes.missing(node)}. Look at its log, and run again."

    def ask(self, applications: bool = False) -> yarn_nodes.Yarn:
        names = yarn_nodes.names_of(self.host, self.variables, str(self.args.get("node") or ""))
        arguments = {
            "state": "nodes",
            "conf_dir": self.args["conf_dir"],
            "names": list(names),
            "applications": applications,
        }
        arguments["drains"] = self.args["state"] not in ("rebootable", "occupied")
        beside = self.beside()
        if beside:
            hostvars = self.variables["hostvars"]
            arguments["together"] = [name for host in beside for name in yarn_nodes.names_of(host, hostvars[host])]
        if self.args.get("record"):
            arguments["record"] = self.args["record"]
        answer = self.ask_again("yarn_manager", PATIENCE, POLL, "YARN continues the requested change", **arguments)
        return yarn_nodes.read(answer["yarn"])

    def beside(self) -> list[str]:
        return [host for host in self.args.get("together") or [] if host != self.host]
