"""Releases the locks (module run_lock) that a run which failed still has. No play can do that: after a fatal error no further play runs."""

from typing import Any

from ansible import context
from ansible.executor.task_queue_manager import TaskQueueManager
from ansible.playbook.play import Play
from ansible.plugins.callback import CallbackBase
from ansible.utils.context_objects import CLIArgs
from ansible.utils.display import Display

from hadoop_dl.hosts.plugin_names import full_name

DOCUMENTATION = """
name: run_lock
type: aggregate
short_description: Release the locks of a run that failed
description: Releases the locks that the run still has at its end.
"""

LIMIT = 60  # seconds for one host
ACTION = full_name("run_lock")
# Options that choose tasks of the run; no task of the locks is chosen.
CHOICES = {"step": False, "tags": ["all"], "skip_tags": [], "start_at_task": None}

display = Display()


class Unanswered(CallbackBase):
    """Prints nothing; has the hosts that did not do what they were asked."""

    def __init__(self) -> None:
        super().__init__()
        self.hosts: list[str] = []

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self.hosts.append(result._host.get_name())

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self.hosts.append(result._host.get_name())


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "run_lock"

    def __init__(self) -> None:
        super().__init__()
        self.held: set[str] = set()
        self.play: Any = None
        self.passwords: dict[str, Any] = {}

    def set_play_context(self, play_context: Any) -> None:
        self.passwords = {"conn_pass": play_context.password, "become_pass": play_context.become_pass}

    def v2_runner_on_ok(self, result: Any) -> None:
        if result._task.action == ACTION:
            (self.held.add if result._result.get("held") is True else self.held.discard)(result._host.get_name())

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        if result._task.action == ACTION:  # it was too late, and may have the host
            self.held.add(result._host.get_name())

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self.v2_runner_on_failed(result)  # its answer was lost

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self.play = play

    def v2_playbook_on_stats(self, stats: Any) -> None:
        locked_hosts = self.release() if self.held else []
        if locked_hosts:
            display.warning(
                f"The locks of this run could not be released on {', '.join(sorted(locked_hosts))}. The next run from this machine takes them over; "
                "another one, with -e run_lock_takeover=true."
            )
        self.held.clear()

    def release(self) -> list[str]:
        """Release what this run has; answers with the hosts on which that failed."""
        manager = self.play.get_variable_manager()
        loader, inventory = manager._loader, manager._inventory
        arguments = {"state": "released", "root": "{{ environment_root | default('/opt/deeplearning') }}"}
        task = {"name": "Unlock the host", ACTION: arguments, "timeout": LIMIT, "tags": ["always"]}
        plan = {
            "name": "Locks of this run",
            "hosts": sorted(self.held),
            "gather_facts": False,
            "become": True,
            "tasks": [task],
        }
        unanswered = Unanswered()
        queue = TaskQueueManager(
            inventory, manager, loader, self.passwords, stdout_callback=unanswered, run_additional_callbacks=False
        )
        inventory.remove_restriction()  # to the hosts of the last play
        cli_arguments = context.CLIARGS
        context.CLIARGS = CLIArgs({**cli_arguments, **CHOICES})
        try:
            queue.run(Play.load(plan, variable_manager=manager, loader=loader))
        finally:
            context.CLIARGS = cli_arguments
            queue.cleanup()
        return unanswered.hosts
