"""gpu-check on captures of real cards (gpu_captures.yml, with their sources): each is answered as somebody who knows the fault would."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import trees
import yaml
from ansible.module_utils.hadoop_dl_host.gpu_health import GOOD, SICK, UNASKED
from gpu_check import cells, yarn_health
from gpu_check.host import Host
from gpu_check_hosts import KERNEL, Library, ask, check

CAPTURES = yaml.safe_load(Path(__file__).with_name("gpu_captures.yml").read_text(encoding="utf-8"))
UNKNOWN = 'Field "%s" is not a valid field to query.\n'


def nvidia_smi(case: dict[str, Any], argument: str) -> tuple[int, str]:
    if "all" in case:
        return case["status"], case["all"]
    status, suffix = case.get("status", 0), case.get("listed", "")
    if argument == "-L":
        return status, "".join(f"GPU {n}: {name} (UUID: GPU-{n})\n" for n, name in enumerate(case["names"])) + suffix
    if argument == "-q":
        return 0, case.get("query", "")
    if not argument.startswith("--query-gpu="):
        return (0, "") if argument.startswith("--query-compute-apps") else (2, "Option is not recognized.\n")
    rows = case.get("cells") or [{} for _ in case["names"]]
    rows = [{"index": str(n), "driver_version": case["driver"], **row} for n, row in enumerate(rows)]
    fields = argument.partition("=")[2].split(",")
    unknown = [field for field in fields if field not in rows[0]]
    if unknown:
        return 2, UNKNOWN % unknown[0]
    return status, "".join(", ".join(row[field] for field in fields) + "\n" for row in rows) + suffix


def captured(case: dict[str, Any], root: Path) -> Host:
    library, gpus = case.get("library", case["driver"]), case.get("gpus", len(case.get("names", [""])))
    here = "/run/systemd/system/here" if case.get("place", "host") == "host" else "/.dockerenv"
    files = {
        **dict.fromkeys((here, "/etc/redhat-release", "/usr/bin/nvidia-smi", "/usr/lib64/libnvidia-ml.so.1"), ""),
        **dict.fromkeys((f"/usr/lib64/libcuda.so.{library}", "/usr/lib64/libcuda.so.1"), ""),
        **dict.fromkeys((f"/boot/vmlinuz-{KERNEL}", f"/lib/modules/{KERNEL}/extra/nvidia.ko", "/dev/nvidiactl"), ""),
        "/proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {case.get('loaded', library)}  Sat\n",
        "/opt/deeplearning/etc/gpu-check.json": json.dumps({"driver": library}),
    }
    for number in range(gpus + case.get("nvswitches", 0)):
        files[f"/sys/bus/pci/devices/{number}/vendor"] = "0x10de\n"
        files[f"/sys/bus/pci/devices/{number}/class"] = "0x030200\n" if number < gpus else "0x068000\n"
        files[f"/dev/nvidia{number}"] = ""
    trees.write(root, files)
    answers = {
        "dmesg": (0, case.get("dmesg", "")),
        "systemctl": tuple(case.get("systemctl", (0, "active"))),
        "uname": (0, KERNEL),
        "rpm": (0, library),
        "modinfo": (0, f"version: {library}\nvermagic: {KERNEL} SMP\n"),
        "ldconfig": (0, "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib64/libcuda.so.1\n"),
    }

    def run(argv: tuple[str, ...], seconds: int = 0, groups: object = None) -> tuple[int | None, str]:
        return (
            nvidia_smi(case, argv[1]) if argv[0] == "nvidia-smi" else answers.get(os.path.basename(argv[0]), (None, ""))
        )

    cuda = case.get("cuda", gpus)
    refused = {"cuInit": cuda["status"]} if isinstance(cuda, dict) else None
    return Host(str(root), run, lambda path: Library(0, gpus if refused else cuda, refused))


@pytest.mark.parametrize(
    ("case", "question", "expected"),
    [
        pytest.param(case, question, expected, id=f"{case['id']}-{question}")
        for case in CAPTURES
        for question, expected in [
            *((name, ["PASS"]) for name in case.get("passes", ())),
            *case.get("expect", {}).items(),
        ]
    ],
)
def test_a_capture_is_answered_as_it_is(tmp_path, monkeypatch, case, question, expected):
    monkeypatch.delenv("CONTAINER_ID", raising=False)
    if case.get("place") == "yarn-in-container":
        monkeypatch.setenv("CONTAINER_ID", "container_e01_1_0001_01_000002")
    outcome, *words = expected
    answer = ask(question, captured(case, tmp_path))
    check(answer, outcome, *(word for word in words if word[0] != "!"))
    assert [word for word in words if word[0] == "!" and word[1:] in answer[1]] == []


# What YARN gets of each capture: the words of a sick GPU, or why nothing could be asked. All others are good, whatever gpu-check's questions say of them.
HANDLE = "Unable to determine the device handle for"
LEAVES = {
    "h100-requires-reset": "GPU 0: the driver asks for Reset; GPU 0: GPU requires reset",
    "lost-in-cells": "GPU 1: GPU is lost",
    "handle-unknown-error": f"{HANDLE} GPU 0000:0B:00.0; Xid 79 at PCI:0000:0b:00 (GPU has fallen off the bus: RESTART_BM)",
    "list-with-one-lost": f"nvidia-smi lists 1 of 2 GPUs; {HANDLE} gpu 0000:0A:00.0",
    "xid119-gsp": "Xid 119 at PCI:0000:9b:00 (GSP RPC timeout: RESET_GPU)",
}
STAYS_UNASKED = {
    **dict.fromkeys(("no-devices-6", "no-devices-status-0", "no-devices-open-on-pascal"), "No devices were found"),
    **dict.fromkeys(("nvml-unknown-error-in-docker", "nvml-exit-12-library"), "a container cannot answer"),
    "k8s-node-nodemanager-none-given": "a container cannot answer",
    "mismatch-580": "must be one version",
    "rminit-gsp": "RmInitAdapter failed",
    "unknown-error-in-cells": "reports [Unknown Error]",
}


@pytest.mark.parametrize("case", CAPTURES, ids=lambda case: case["id"])
def test_only_a_gpu_that_is_sick_for_sure_takes_its_host_out_of_yarn(tmp_path, case):
    kind, words = yarn_health.look(captured(case, tmp_path))
    if case["id"] in STAYS_UNASKED:
        assert kind == UNASKED
        assert STAYS_UNASKED[case["id"]] in words
    else:
        assert (kind, words) == ((SICK, LEAVES[case["id"]]) if case["id"] in LEAVES else (GOOD, ""))


@pytest.mark.parametrize(
    "cell", ["[GPU is lost]", "[GPU requires reset]", "[Unknown Error]", "ERR!", "[Some new words]", ""]
)
@pytest.mark.parametrize("field", [start + ("x" if start[-1] == "." else "") for start, _ in cells.FORMS])
def test_no_field_takes_the_words_of_a_sick_card(field, cell):
    assert not cells.is_value(field, cell)
    assert cells.is_value(field, "[N/A]")


@pytest.mark.parametrize("row", [["No devices were found"], ["0"], ["0", "1", "2"]])
def test_a_row_that_is_short_or_long_is_named(row):
    assert ", ".join(row) in cells.problem(["index", "pcie.link.width.max"], row)
