"""How a sick GPU takes its host out of YARN: one look after the other, what the NodeManager's health script makes of the answer, and the plan."""

import getpass
import os
import shlex
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import trees
from ansible.module_utils.hadoop_dl_host import gpu_health, host_system
from ansible.module_utils.hadoop_dl_host.gpu_health import GOOD, SICK, UNASKED
from gpu_check import kernel_log, yarn_health
from gpu_check_hosts import MISMATCH, NO_DRIVER, host
from plan_hosts import NODE, REPOSITORY, make_host

from hadoop_dl import plan
from hadoop_dl.data import yarn_work
from hadoop_dl.plan import model

SITE = "/etc/hadoop/conf/yarn-site.xml"
XID_62 = "NVRM: Xid (PCI:0000:3b:00): 62, pid=1, name=python, 0000(0000) 00000000 00000000\n"
ECC = "nvidia-smi --query-gpu=index,ecc.errors.uncorrected.volatile.total"
ACTION = "nvidia-smi --query-gpu=index,gpu_recovery_action"
FLAGS = "nvidia-smi --query-gpu=index,reset_status.reset_required,reset_status.drain_and_reset_recommended"
ROWS = "nvidia-smi --query-gpu=index,remapped_rows.failure"
HEALTHY = {ECC: (0, "0, 0\n"), ACTION: (0, "0, None\n"), ROWS: (0, "0, No\n")}
UNKNOWN = (2, 'Field "gpu_recovery_action" is not a valid field to query.\n')
HUNG = (yarn_health.HUNG, "")


def look(root: Path, **answers: Any) -> tuple[str, str]:
    return yarn_health.look(host(root, answers={**HEALTHY, **answers}))


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({}, (GOOD, "")),
        # A program's error, or what the driver recommends for later: other work on the GPU goes on.
        ({ECC: (0, "0, 2\n")}, (GOOD, "")),
        ({ACTION: (0, "0, Drain and Reset\n")}, (GOOD, "")),
        ({ACTION: (0, "0, Drain P2P\n")}, (GOOD, "")),
        ({ACTION: (0, "0, Reset\n")}, (SICK, "GPU 0: the driver asks for Reset")),
        ({ACTION: (0, "0, Reboot\n")}, (SICK, "GPU 0: the driver asks for Reboot")),
        ({ROWS: (0, "0, Yes\n")}, (SICK, "GPU 0: a row of memory could not be remapped")),
        # 535 has flags. They deny an Xid of before a reset as well, but [N/A] does not.
        ({ACTION: UNKNOWN, FLAGS: (0, "0, No, Yes\n")}, (GOOD, "")),
        (
            {ACTION: UNKNOWN, FLAGS: (0, "0, Yes, Yes\n")},
            (SICK, "GPU 0: the driver asks for reset_status.reset_required and "),
        ),
        ({"dmesg": (0, XID_62), ACTION: UNKNOWN, FLAGS: (0, "0, No, No\n")}, (GOOD, "")),
        ({"dmesg": (0, XID_62), ACTION: UNKNOWN, FLAGS: (0, "0, [N/A], [N/A]\n")}, (SICK, "Xid 62 at PCI:0000:3b:00")),
        ({"dmesg": (0, XID_62)}, (GOOD, "")),
        (
            {"dmesg": (0, XID_62), ACTION: (0, "0, [N/A]\n")},
            (SICK, "Xid 62 at PCI:0000:3b:00 (microcontroller halt: RESET_GPU)"),
        ),
        ({"dmesg": (0, XID_62 + kernel_log.LOADED + " x86_64"), ACTION: (0, "0, [N/A]\n")}, (GOOD, "")),
        # The driver does not run, or another version of it: what the log has of cards is older.
        ({"nvidia-smi": MISMATCH, "dmesg": (0, XID_62)}, (UNASKED, "must be one version")),
        ({"nvidia-smi": NO_DRIVER, "dmesg": (0, XID_62)}, (UNASKED, "must run in the kernel but does not")),
        ({"nvidia-smi": (15, "GPU error")}, (SICK, "a GPU has fallen off the bus")),
        # A busy host may be slow: only with the kernel's word for it is a GPU sick.
        ({"nvidia-smi": HUNG}, (UNASKED, "hung")),
        ({"nvidia-smi": HUNG, "dmesg": (0, XID_62)}, (SICK, "Xid 62 at PCI:0000:3b:00")),
    ],
)
def test_what_is_sick(tmp_path, answers, expected):
    if "nvidia-smi" in answers:
        answers = {**answers, "nvidia-smi -L": answers["nvidia-smi"], **dict.fromkeys(HEALTHY, answers["nvidia-smi"])}
    kind, words = look(tmp_path, **answers)
    assert kind == expected[0], words
    assert expected[1] in words


def test_no_nvidia_smi_is_added_to_one_that_hangs(tmp_path, monkeypatch):
    waits: list[float] = []
    monkeypatch.setattr(yarn_health.time, "sleep", waits.append)
    trees.write(tmp_path, {"/proc/7/stat": "7 (nvidia-smi) D 1 7"})
    machine = host(tmp_path, answers=HEALTHY)
    assert yarn_health.look(machine) == (UNASKED, "nvidia-smi hangs in the driver")
    assert [argv[0] for argv in machine.answers] == ["dmesg"]
    trees.write(tmp_path, {"/proc/7/stat": "7 (nvidia-smi) S 1 7"})
    assert look(tmp_path) == (GOOD, "")
    assert waits == [yarn_health.SECONDS]


@pytest.mark.parametrize(
    ("looks", "outs"),
    [
        ([SICK], [False]),
        ([SICK, SICK], [False, True]),
        ([SICK, GOOD, SICK, GOOD], [False] * 4),
        ([SICK, SICK, GOOD, SICK, GOOD, GOOD, SICK], [False, True, True, True, True, False, False]),
        ([UNASKED, SICK, UNASKED, SICK], [False] * 4),
        ([SICK, SICK, UNASKED, UNASKED], [False, True, True, True]),  # until that answer is old
    ],
)
def test_two_looks_in_a_row_change_what_yarn_gets(looks, outs):
    lines: tuple[str, str] | None = None
    for kind, out in zip(looks, outs, strict=True):
        lines = yarn_health.following(lines, kind, "GPU 1: GPU is lost") or lines
        assert lines
        assert lines[0].startswith(SICK) is out


def hadoop(root: Path) -> str:
    """What the health script prints, as the NodeManager runs it."""
    path, options = (yarn_work.HEALTH_SETTINGS[f"{yarn_work.HEALTH}.script.{name}"] for name in ("path", "opts"))
    text = options.replace(gpu_health.PATH, shlex.quote(f"{root}{gpu_health.PATH}"))
    text = text.replace("-user root", f"-user {getpass.getuser()}")
    answer = subprocess.run([path, *text.split(",")], capture_output=True, text=True, check=True)
    return answer.stdout


def test_the_nodemanager_reads_the_last_answer_while_it_is_new(tmp_path, capsys):
    (tmp_path / "run").mkdir()
    machine = host(tmp_path, answers={**HEALTHY, ACTION: (0, "0, Reset\n")})
    assert hadoop(tmp_path) == "", "no answer yet"
    assert yarn_health.main(machine) == 0
    assert not hadoop(tmp_path).startswith(SICK), "seen once"
    assert yarn_health.main(machine) == 0
    assert hadoop(tmp_path) == (
        "ERROR: sick GPU (gpu-check): GPU 0: the driver asks for Reset. The node comes back by itself when that has ended.\n"
    )
    assert capsys.readouterr().out == "ERROR GPU 0: the driver asks for Reset\n" * 2
    path = tmp_path / "run/deeplearning-gpu-health"
    assert path.stat().st_mode & 0o777 == 0o644
    old = time.time() - 60 * gpu_health.MINUTES - 60
    os.utime(path, (old, old))
    assert hadoop(tmp_path) == "", "an old answer throws no node out"
    assert gpu_health.last(host_system.System(str(tmp_path)))["minutes"] == gpu_health.MINUTES + 1
    yarn_health.main(machine)
    assert not hadoop(tmp_path).startswith(SICK), "an old answer does not count as the look before"


def test_an_answer_of_somebody_else_is_none(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/deeplearning-gpu-health").write_text("ERROR: of a user\n", encoding="utf-8")
    assert hadoop(tmp_path).startswith(SICK), "of the account that stands for root here"
    options = yarn_work.READS_HEALTH.replace(gpu_health.PATH, f"{tmp_path}{gpu_health.PATH}").replace("root", "nobody")
    answer = subprocess.run(["/bin/sh", *options.split(",")], capture_output=True, text=True, check=True)
    assert answer.stdout == ""


def site(settings: dict[str, str] | None = None, **yarn: Any) -> dict[str, Any]:
    files = {SITE: {"settings": settings or {}, "ours": {}, "problem": None}}
    return {**NODE, "yarn": {"manager": None, "files": files, **yarn}}


def made(node: dict[str, Any], **variables: Any) -> model.Plan:
    """A host with GPUs, whose gpu-check and its timer are installed."""
    inputs = {"yarn_gpu": True, "yarn_gpu_health": True, **variables}
    first = plan.make_plan([make_host(node=node, **inputs)], REPOSITORY)
    receipts = {"gpu_check": {"digest": first.hosts["data1"]["digests"]["gpu_check"], "problem": None}}
    installed = {**node, "deeplearning": {**node["deeplearning"], "receipts": receipts}}
    return plan.make_plan([make_host(node=installed, **inputs)], REPOSITORY)


def sentences(answer: model.Plan, word: str) -> list[str]:
    return [text for text in [*answer.problems, *answer.warnings] if word in text]


@pytest.mark.parametrize(
    ("settings", "variables", "problem"),
    [
        ({}, {}, ""),
        (yarn_work.HEALTH_SETTINGS, {}, ""),
        ({f"{yarn_work.HEALTH}.interval-ms": "600000"}, {}, ""),
        ({yarn_work.SCRIPTS: "script,disks"}, {}, ""),
        (
            {f"{yarn_work.HEALTH}.script.path": "/srv/health"},
            {},
            f"has {yarn_work.HEALTH}.script.path=/srv/health. It was",
        ),
        ({yarn_work.SCRIPTS: "disks"}, {}, f"has {yarn_work.SCRIPTS}=disks. It was left as it is. Remove it there; or"),
        ({}, {"yarn_gpu_devices": "0:0"}, "requires that YARN has every GPU of the host"),
        ({}, {"yarn_gpu_devices": "0:0,1:1"}, ""),
        ({f"{yarn_work.HEALTH}.script.path": "/srv/health"}, {"yarn_gpu_health": False}, ""),
    ],
)
def test_a_health_script_of_the_site_is_refused_and_stays(settings, variables, problem):
    found = [text for text in made(site(settings), **variables).problems if "health" in text]
    assert len(found) == bool(problem)
    assert all(problem in text for text in found)


def test_a_manager_gets_the_properties_of_the_health_script():
    (text,) = sentences(made(site(manager="ambari")), "owns Hadoop's files")
    assert f"{yarn_work.HEALTH}.script.opts=-c,find /run/deeplearning-gpu-health -user root -mmin -10 " in text


@pytest.mark.parametrize(
    ("health", "words"),
    [
        (
            None,
            "YARN leaves it in, whatever its GPUs have: /run/deeplearning-gpu-health is missing. Run playbooks/gpu.yml",
        ),
        (("OK", 10), "is 10 minutes old. Run playbooks/gpu.yml, or read journalctl -u deeplearning-gpu-health"),
        (("ERROR: sick GPU (gpu-check): GPU 1: GPU is lost.", 0), "YARN has it UNHEALTHY: ERROR: sick GPU"),
        (
            ("NOT ASKED: nvidia-smi hangs in the driver", 1),
            "YARN leaves it in, whatever its GPUs have: NOT ASKED: nvidia-smi",
        ),
        (("OK", 9), ""),
        (("SEEN ONCE: GPU 1: GPU is lost", 0), ""),
    ],
)
def test_plan_verify_and_report_name_what_the_last_answer_means(health, words):
    answer = dict(zip(("line", "minutes"), health, strict=True), look="OK") if health else None
    found = sentences(made(site(gpu_health=answer)), "YARN has it") + sentences(
        made(site(gpu_health=answer)), "leaves it in"
    )
    assert [words in text for text in found] == [True] * bool(words)
    assert sentences(made(site(gpu_health=answer), yarn_gpu_health=False), "leaves it in") == []


def test_the_table_of_the_plan_says_that_the_host_may_leave():
    window = {"yarn_gpu_restart_allowed": True, "yarn_gpu_nodemanager_command": "systemctl restart nm"}
    rows = [row.wanted for row in made(site(), **window).rows if row.component == "yarn_gpu"]
    assert rows == ["yarn.io/gpu, not isolated, leaves YARN while a GPU is sick"]
