"""Reboot a host, or check that it may: no master of Hadoop without being named, and no DataNode while HDFS lacks replicas.

What decides is in lib/hadoop_dl/data/hdfs_health.py.
"""

import time
from collections.abc import Callable

from ansible.errors import AnsibleActionFail
from ansible.utils.display import Display

from hadoop_dl.data import hdfs_health
from hadoop_dl.hosts.actions import HostAction

POLL = 10  # seconds between two questions
PATIENCE = 120  # seconds for a host that does not answer meanwhile
STATES = ("checked", "rebooted")


class ActionModule(HostAction):
    """guarded_reboot: `state` checked (nothing changes) or rebooted, with `reboot`, the arguments of ansible.builtin.reboot.

    On a host with a DataNode HDFS must have every replica but of `blocks` blocks, while `at_once` hosts reboot together; this is waited for, and
    afterwards for as many DataNodes as before, at most `seconds` each. 0: HDFS is not asked. `masters`: hosts whose daemons may stop.
    """

    REQUIRED = ("state", "conf_dir", "masters", "seconds", "blocks", "at_once")
    OPTIONAL = ("reboot",)

    def act(self) -> dict[str, object]:
        if self.args["state"] not in STATES:
            self.misused(f"a state of {', '.join(STATES)}")
        seconds, blocks, away = (int(self.args[name]) for name in ("seconds", "blocks", "at_once"))
        reboots = self.args["state"] == "rebooted" and not self.checking
        before = self.ask("datanode" if seconds else "never")
        refusal = hdfs_health.master_problem(self.host, before, self.args["masters"])
        if refusal:
            raise AnsibleActionFail(refusal)
        guarded = seconds > 0 and "DataNode" in before.daemons
        if guarded and (reboots or hdfs_health.lasting(before, blocks)):
            before = self.wait(
                before,
                lambda answer: hdfs_health.problem(answer, blocks, away - 1),
                f"HDFS must be whole before {self.host} reboots",
                "The host was not rebooted",
                seconds if reboots else 0,
            )
        if reboots:
            self.plugin("ansible.builtin.reboot", self.args.get("reboot") or {})
        if guarded and reboots:
            time.sleep(before.hdfs.stale_after if before.hdfs else 0)
            self.wait(
                self.ask("always"),
                lambda answer: (
                    hdfs_health.back_problem(before, answer) or hdfs_health.problem(answer, blocks, away - 1)
                ),
                f"HDFS must be whole after the reboot of {self.host}",
                "Start the DataNodes that do not run",
                seconds,
            )
        return {}

    def wait(
        self,
        answer: hdfs_health.Answer,
        problem: Callable[[hdfs_health.Answer], str | None],
        must: str,
        then: str,
        seconds: int,
    ) -> hdfs_health.Answer:
        end, shown = time.monotonic() + seconds, ""
        while True:
            reason = problem(answer)
            if reason is None:
                return answer
            if time.monotonic() >= end:
                waited = f"after {seconds} s {reason}" if seconds else reason
                raise AnsibleActionFail(
                    f"{must}, but {waited}. {then}. {hdfs_health.LOOK}, and run the same command again; nvidia_driver_reboot_hdfs_blocks accepts so many "
                    "blocks, and with nvidia_driver_reboot_hdfs_wait: 0 HDFS is not asked."
                )
            if reason != shown:
                Display().display(f"{self.host} waits for HDFS: {reason}")
                shown = reason
            time.sleep(min(POLL, max(0.1, end - time.monotonic())))
            answer = self.ask("always")

    def ask(self, hdfs: str) -> hdfs_health.Answer:
        arguments = {"conf_dir": self.args["conf_dir"], "hdfs": hdfs}
        answer = self.ask_again("hadoop_daemons_info", PATIENCE, POLL, "Nothing else was changed", **arguments)
        try:
            return hdfs_health.read(answer)
        except ValueError as problem:
            raise AnsibleActionFail(f"{self.host}: HDFS must answer as Hadoop does, but has {problem}.") from None
