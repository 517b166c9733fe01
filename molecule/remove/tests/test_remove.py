"""playbooks/remove.yml as an operator runs it; each test begins with what the one before left."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import ansible_programs
import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
EL7, EL9 = NODES = "remove-el7", "remove-el9"
ENVIRONMENT = "/opt/deeplearning/envs/scenario-0123456789ab"
STATE = REPOSITORY / "molecule" / "shared" / "host_state.py"
CONFIRMED = ("-e", "remove_confirmed=true")


def start(*options: str) -> subprocess.Popen[str]:
    arguments = ("-i", os.environ["MOLECULE_INVENTORY_FILE"], REPOSITORY / "playbooks" / "remove.yml")
    return ansible_programs.start(*arguments, *options, ANSIBLE_CONFIG=str(REPOSITORY / "ansible.cfg"))


def run(*options: str) -> tuple[int, str]:
    process = start(*options)
    output, _ = process.communicate(timeout=600)
    print(output)
    return process.returncode, " ".join(output.split())


def execute(node: str, *command: str, stdin: str | None = None, check: bool = True) -> str:
    completed = subprocess.run(
        ["docker", "exec", *(["--interactive"] if stdin else []), node, *command],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
        check=check,
    )
    return completed.stdout


def state(node: str) -> dict[str, object]:
    return json.loads(execute(node, "python3", "-", stdin=STATE.read_text(encoding="utf-8")))


def differences(before: dict[str, object], after: dict[str, object]) -> list[str]:
    lines = []
    for key in sorted(set(before) | set(after)):
        old, new = before.get(key), after.get(key)
        if isinstance(old, list) and isinstance(new, list):
            lines += [f"{key}: - {item}" for item in old if item not in new] + [
                f"{key}: + {item}" for item in new if item not in old
            ]
        elif old != new:
            lines.append(f"{key}: {old} -> {new}")
    return lines


@pytest.fixture(scope="module")
def installed() -> dict[str, dict[str, object]]:
    return {node: state(node) for node in NODES}


def test_everything_is_there_that_is_to_be_removed(installed: dict[str, dict[str, object]]) -> None:
    for path in (
        f"{ENVIRONMENT}.1",
        "/opt/deeplearning/spark",
        "/usr/local/bin/tfos-submit",
        "/opt/deeplearning/etc/hdfs.json",
    ):
        assert f"file {path}" in installed[EL7]
    for path in ("/opt/bazel/0.26.1/bin/bazel", "/srv/deeplearning-mirror/manifest.json", "/usr/local/bin/gpu-check"):
        assert f"file {path}" in installed[EL9]
    for node in NODES:
        before = json.loads(execute(node, "cat", "/srv/state-before.json"))
        assert len(differences(before, installed[node])) > 50


@pytest.mark.parametrize(("option", "status"), [((), 2), (("--check", "--diff"), 0)], ids=["unconfirmed", "check"])
def test_it_shows_what_goes_and_changes_nothing(
    option: tuple[str, ...], status: int, installed: dict[str, dict[str, object]]
) -> None:
    code, output = run(*option)
    assert code == status
    for words in (
        "REMOVE: 2 of 2 hosts have something to remove",
        "scenario-0123456789ab (active)",
        "hdfs /apps/deeplearning/spark/pyspark-3.0.3-",
        "driver, CUDA 12.2, cuDNN 8.9.7.29, NCCL 2.18.5, gpu-check",
        "bazel 0.26.1",
        "/srv/deeplearning-mirror (4 files)",
        "/opt/deeplearning/README.site (not managed by this project)",
    ):
        assert words in output
    assert ("-e remove_confirmed=true. No host was changed." in output) is (status == 2)
    assert {node: differences(installed[node], state(node)) for node in installed} == dict.fromkeys(NODES, [])


def test_named_parts_go_and_the_others_stay() -> None:
    code, output = run(*CONFIRMED, "-e", "remove_parts=bazel,mirror")
    assert code == 0, output
    after = state(EL9)
    before = json.loads(execute(EL9, "cat", "/srv/state-before.json"))
    leftovers = [line for line in differences(before, after) if "mirror" in line or "bazel" in line]
    assert leftovers == []
    assert "file /usr/local/bin/gpu-check" in after
    assert "file /opt/deeplearning/etc/gpu-check-cuda.json" in after


@pytest.mark.parametrize(
    "task",
    [
        "Remove every environment with the settings of Spark and Hadoop",
        "nvidia_driver : Remove the packages",
    ],
)
def test_it_is_killed(task: str) -> None:
    """With its connections, in the middle of a task, as a controller that loses its power."""
    process = start(*CONFIRMED)
    assert process.stdout is not None
    task_began = False
    for line in process.stdout:
        print(line, end="")
        if line.startswith(f"TASK [{task}"):
            task_began = True
            time.sleep(1.5)
            os.killpg(process.pid, signal.SIGKILL)
            break
    process.wait(timeout=30)
    assert task_began


def test_the_same_command_ends_it_and_the_hosts_are_as_before() -> None:
    time.sleep(15)  # a package manager whose connection was killed ends its transaction
    code, output = run(*CONFIRMED)
    assert code == 0, output
    leftovers = {}
    for node in NODES:
        before = json.loads(execute(node, "cat", "/srv/state-before.json"))
        leftovers[node] = differences(before, state(node))
    assert leftovers == dict.fromkeys(NODES, [])
    assert execute(EL7, "cat", "/opt/deeplearning/README.site") == "Ask operations before you touch this.\n"


def test_again_there_is_nothing_to_remove() -> None:
    code, output = run(*CONFIRMED)
    assert code == 0
    assert "REMOVE: 0 of 2 hosts have something to remove." in output
    assert "changed=1" not in output
