"""Keeps the locks of a run (module run_lock) as long as the run lives: renews them, and releases what a run that failed still has.

No play can do that. After a fatal error no further play runs, and a host for which others wait, for days perhaps, is not addressed meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
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
short_description: Renew and release the locks of a run
description: Renews the locks that the run has every half hour, and releases those of a run that failed.
"""

EVERY = 1800  # seconds between two renewals; runs.SILENT has 48 of them
LIMIT = 60  # seconds for one host
ACTION = full_name("run_lock")
GLANCE = 2  # seconds after which the process that renews has seen that the run is gone
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
        self.renewing = 0  # a process
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
        """Between two plays Ansible has one thread, so a process can be made from it."""
        self.play = play
        if self.held and not self.renewing:
            run = os.getpid()
            self.renewing = os.fork()
            if not self.renewing:
                self.renew_while_it_lives(run)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        if self.renewing:
            self.end_renewal()
        locked_hosts = self.every_host("released") if self.held else []
        if locked_hosts:
            display.warning(
                f"The locks of this run could not be released on {', '.join(sorted(locked_hosts))}. The next run from this controller takes them over; "
                "another one, with -e run_lock_takeover=true."
            )
        self.held.clear()

    def end_renewal(self) -> None:
        """With the processes that it started. Before it has its own session it has none, and nobody may have waited for it."""
        with contextlib.suppress(OSError):
            try:
                os.killpg(self.renewing, signal.SIGKILL)
            except ProcessLookupError:
                os.kill(self.renewing, signal.SIGKILL)
            os.waitpid(self.renewing, 0)
        self.renewing = 0

    def renew_while_it_lives(self, run: int) -> None:
        try:
            os.setsid()  # without a terminal: nothing asks there for a password
            null_device = os.open(os.devnull, os.O_RDWR)
            for standard in (0, 1, 2):
                os.dup2(null_device, standard)
            due = time.monotonic() + EVERY
            while os.getppid() == run:
                time.sleep(GLANCE)
                if time.monotonic() > due and os.getppid() == run:
                    self.every_host("renewed", run)
                    due = time.monotonic() + EVERY
        finally:
            os._exit(0)

    def every_host(self, state: str, run: int = 0) -> list[str]:
        """Renew or release what this run has; answers with the hosts on which that failed."""
        manager = self.play.get_variable_manager()
        loader, inventory = manager._loader, manager._inventory
        arguments = {
            "state": state,
            "root": "{{ environment_root | default('/opt/deeplearning') }}",
            "run": run or os.getpid(),
        }
        task = {"name": f"The lock is {state}", ACTION: arguments, "timeout": LIMIT, "tags": ["always"]}
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
