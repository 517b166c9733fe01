"""SIGKILL of an upgrade while the canary's job runs, before its end is read, and on the way back; the same command ends as an undisturbed run.

The layers of upgrade_stack.yml on hosts that are directories, as in tests/unit/test_upgrade_stack.py. The job is detached, so it goes on.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_programs import REPOSITORY
from upgrade_hosts import GROUPS, NEW, OLD, active, canary

SECONDS = 600  # for a run of the playbook
# It tells that it began, and ends with the status that the test writes.
JOB = "echo begun >> {0}/begun; while [ ! -s {0}/status ]; do sleep 0.1; done; exit $(cat {0}/status)"
# Where the first run is killed, how its job ends (if it does before), and how the job of the same command ends.
POINTS = [
    ("the job runs", None, 0),
    ("the job runs", None, 3),
    ("the job ended and is not read", 0, 3),
    ("the job ended and is not read", 3, 0),
    ("the canary is about to go back", 3, 0),
    ("the canary is about to go back", 3, 3),
    ("the canary is back", 3, 0),
]


class Upgrade:
    def __init__(self, directory: Path) -> None:
        self.directory, self.said = directory, directory / "said"
        (directory / "tmp").mkdir()

    def start(self) -> subprocess.Popen[bytes]:
        variables = json.dumps(canary(JOB.format(self.directory)))
        program = Path(sys.executable).parent / "ansible-playbook"
        argv = [program, "-i", self.directory / "hosts.yml", self.directory / "upgrade.yml", "-e", variables]
        variables = {"ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), "TMPDIR": str(self.directory / "tmp")}
        with self.said.open("wb") as stream:
            return subprocess.Popen(
                argv,
                env={**os.environ, "ANSIBLE_NOCOLOR": "1", **variables},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )

    def end_jobs(self, status: int) -> None:
        (self.directory / "status").write_text(str(status), encoding="utf-8")

    def has_ended(self) -> bool:
        statuses = [json.loads(path.read_text()) for path in self.directory.glob("tmp/*.canary-status/status.json")]
        return any(status["command_state"] == "ended" for status in statuses)

    def wait(self, process: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
        end = time.monotonic() + SECONDS
        while not condition():
            assert process.poll() is None, self.said.read_text()
            assert time.monotonic() < end
            time.sleep(0.01)

    def is_at(self, place: str) -> Callable[[], bool]:
        return {
            "the job runs": lambda: self.jobs() == 1,
            "the job ended and is not read": self.has_ended,
            "the canary is about to go back": lambda: "[Go back to what was active before]" in self.said.read_text(),
            "the canary is back": lambda: active(self.directory)["data1"] == OLD,
        }[place]

    def jobs(self) -> int:
        path = self.directory / "begun"
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.parametrize(("place", "status", "again"), POINTS)
def test_the_same_command_ends_an_upgrade_that_was_killed(
    cluster: Path, place: str, status: int | None, again: int
) -> None:
    upgrade = Upgrade(cluster)
    process = upgrade.start()
    upgrade.wait(process, upgrade.is_at("the job runs"))
    assert active(cluster) == {**dict.fromkeys(GROUPS, OLD), "data1": NEW}, "the canary alone"
    if status is not None:
        upgrade.end_jobs(status)
        upgrade.wait(process, upgrade.is_at(place))
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(timeout=60) == -signal.SIGKILL, "it had ended"
    assert {name for name, path in active(cluster).items() if path == NEW} <= {"data1"}
    (cluster / "status").unlink(missing_ok=True)
    process = upgrade.start()
    upgrade.wait(process, lambda: upgrade.jobs() == 2)
    upgrade.end_jobs(again)
    code = process.wait(timeout=SECONDS)
    expected = OLD if again else NEW
    assert (code, active(cluster)) == (2 if again else 0, dict.fromkeys(GROUPS, expected)), upgrade.said.read_text()
    assert not list(cluster.glob("*/.run.json"))
    assert all((cluster / name / "envs" / stack).is_dir() for name in GROUPS for stack in (OLD, NEW))
