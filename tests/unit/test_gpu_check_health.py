"""gpu-check's questions about the log of the kernel and about links between GPUs. Memory and errors: test_gpu_check_drivers.py."""

import os

import pytest
import trees
from gpu_check.host import execute
from gpu_check_hosts import ask, check, host

XID = "[1.0] NVRM: Xid (PCI:0000:3b:00): %d, pid=1234, name=python3, a text\n"
# What the driver prints: src/nvidia/src/kernel/gpu/gpu.c, arch/ampere/kern_gpu_error_cont_ga100.c and, for switches,
# src/common/nvswitch/kernel/error_nvswitch.c, inc/intr_nvswitch.h and ls10/heartbeat_ls10.c of https://github.com/NVIDIA/open-gpu-kernel-modules
# (595.45.04). The three lines of one error of a switch are the example of NVIDIA's fabric manager guide.
ACTION = "[1.0] NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from %s to %s\n"
NONE, REBOOT = "0x0 (None)", "0x2 (Node Reboot Required)"
CONTAINED = "[1.0] NVRM: Xid (PCI:0000:3b:00): 94, pid=7062, Contained: CE User Channel (0x9). RST: No, D-RST: No\n"
REMAPPED = "[1.0] NVRM: Xid (PCI:0000:3b:00): 63, pid=1896, Row Remapper: New row marked for remapping, reset gpu to activate.\n"
# Its form: components/accelerator/nvidia/xid/nvlink_logs_test.go of https://github.com/leptonai/gpud
NVLINK = "[1.0] NVRM: Xid (PCI:0000:3b:00): 145, pid=876766, name=python, RLW_RXPIPE %s XC0 i0 Link 12 (0x040980c2 0x00000008)\n"
SXID = "[1.0] nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): %d, %s, Link 28 RX Short Error Rate\n"
HEAT = "[1.0] nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): %d, OSFP Thermal Warn %s\n"
SWITCH = """[1.0] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Fatal, Link 46 MC TS crumbstore MCTO (First)
[1.0] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Severity 1 Engine instance 46 Sub-engine instance 00
[1.0] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Data {0x00140004, 0x00100000, 0x00140004, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000}
"""


@pytest.mark.parametrize(
    ("log", "outcome", "words"),
    [
        ("nothing", "PASS", "none"),
        (XID % 13 + XID % 31, "PASS", "warning: Xid 13 at PCI:0000:3b:00 (graphics engine exception), Xid 31"),
        (XID % 13 + XID % 79, "FAIL", "has Xid 79 at PCI:0000:3b:00 (GPU has fallen off the bus: RESTART_BM). Words"),
        (XID % 48, "FAIL", "Xid 48"),
        (SXID % (12028, "Fatal"), "FAIL", "SXid 12028 at PCI:0000:c3:00.0"),
        (SXID % (20009, "Non-fatal"), "PASS", "SXid 20009 at PCI:0000:c3:00.0 (Non-fatal)"),
        (SXID % (12028, "Correctable"), "PASS", "SXid 12028 at PCI:0000:c3:00.0 (Correctable)"),
        (SWITCH, "FAIL", "has SXid 28006 at PCI:0000:c1:00.0. Words"),
        (HEAT % (28001, "Activated"), "FAIL", "SXid 28001"),
        (HEAT % (28002, "Deactivated"), "PASS", "none"),
        (REMAPPED, "PASS", "warning: Xid 63 at PCI:0000:3b:00 (memory will be remapped)"),
        (XID % 69 + XID % 999, "PASS", "Xid 999 at PCI:0000:3b:00 (not in NVIDIA's catalogue of "),
        (XID % 109 + XID % 45, "PASS", "Xid 109"),
        (XID % 162, "PASS", "(power smoothing engaged again)"),
        (XID % 167, "FAIL", "(fatal PCIe timeout: no action named)"),
        (NVLINK % "Nonfatal", "PASS", "warning: Xid 145 at PCI:0000:3b:00 (NVLink RLW error, Nonfatal)"),
        (NVLINK % "Fatal", "FAIL", "Xid 145 at PCI:0000:3b:00 (NVLink RLW error)"),
        (NVLINK % "Link Fatal?", "FAIL", "Xid 145"),
        (NVLINK % "", "FAIL", "Xid 145"),
        (CONTAINED, "PASS", "warning: Xid 94 at PCI:0000:3b:00 (contained memory error)"),
        (XID % 95, "FAIL", "Xid 95"),
        (ACTION % (NONE, REBOOT), "FAIL", "Xid 154 at PCI:0000:3b:00 (Node Reboot Required)"),
        (ACTION % (REBOOT, NONE) + ACTION % (NONE, REBOOT), "FAIL", "Xid 154"),
    ],
)
def test_errors_of_programs_warn_and_errors_of_the_hardware_fail(tmp_path, log, outcome, words):
    check(ask("xid", host(tmp_path, answers={"dmesg": (0, log)})), outcome, words)


# What the loader says of a file that is missing: ld.so(8), LD_PRELOAD
WARNING = "ERROR: ld.so: object 'x.so' from LD_PRELOAD cannot be preloaded (cannot open shared object file): ignored."


@pytest.mark.parametrize(
    ("status", "printed", "outcome", "words"),
    [
        (0, "0, 535.104.05", "PASS", "it answers"),
        (6, "No devices were found", "FAIL", "No devices were found"),
        (9, "", "FAIL", "status 9: ERROR: ld.so"),
    ],
)
def test_a_warning_beside_an_answer_is_no_row_of_it(tmp_path, monkeypatch, status, printed, outcome, words):
    program = tmp_path / "bin/nvidia-smi"
    trees.write(tmp_path, {"/bin/nvidia-smi": f'#!/bin/sh\necho "{WARNING}" >&2\necho "{printed}"\nexit {status}\n'})
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    machine = host(tmp_path)
    machine.execute = execute
    check(ask("driver_runs", machine), outcome, words)


def test_cards_that_remap_no_rows_of_memory_have_none_that_wait(tmp_path):
    """--query-remapped-rows has a row for each GPU that can, from Ampere on."""
    refused = 'Field "%s" is not a valid field to query.\n\n'
    unknown = (
        "remapped_rows.failure",
        "remapped_rows.pending",
        "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",
    )
    answers = {
        "nvidia-smi --query-gpu=index,retired_pages.pending": (0, "0, No\n"),
        **{f"nvidia-smi --query-gpu=index,{name}": (2, refused % name) for name in unknown},
        **{f"nvidia-smi --query-remapped-rows=gpu_bus_id,{name}": (0, "\n") for name in unknown[:2]},
    }
    check(
        ask("retired_pages", host(tmp_path, answers=answers)),
        "PASS",
        "no GPU here remaps",
        "retired_pages.pending: GPU 0: No",
    )


# Two pairs as nvidia-smi prints them; older drivers underline the header and have no last column.
PAIRS = """\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV4\tSYS\tPIX\t0-15\t0\t\tN/A
GPU1\tNV4\t X \tSYS\tNODE\t0-15\t0\t\tN/A
GPU2\tSYS\tSYS\t X \tSYS\t16-31\t1\t\tN/A
NIC0\tPIX\tNODE\tSYS\t X

Legend:

  X    = Self
"""


@pytest.mark.parametrize(
    ("nodes", "matrix", "message"),
    [
        ([0, 0, 1], (0, PAIRS), "0-1 NV4, 0-2 SYS, 1-2 SYS; NUMA node of each: 0, 0, 1"),
        ([0], (0, "\tGPU0\tCPU Affinity\nGPU0\t X \t0-15\n"), "one GPU; NUMA node of each: 0"),
        ([0, -1], (1, "not supported"), "links are not reported; NUMA node of each: 0, unknown"),
    ],
)
def test_how_gpus_reach_each_other_and_the_memory_is_reported(tmp_path, nodes, matrix, message):
    files = {f"/sys/bus/pci/devices/{gpu}/numa_node": f"{node}\n" for gpu, node in enumerate(nodes)}
    machine = host(tmp_path, gpus=len(nodes), files=files)
    machine.answers["nvidia-smi", "topo", "-m"] = matrix
    assert ask("topology", machine) == ("PASS", message)


# As nvidia-smi -q prints it in a guest: docs.nvidia.com/ai-enterprise (licensing of vGPU for Compute), and the words of NVIDIA's DCGM.
PART = """GPU 00000000:0%d:01.0
    Product Name                          : %s
    vGPU Software Licensed Product
        Product Name                      : NVIDIA Virtual Compute Server
"""
STATUS = "        License Status                    : %s\n"
GRANTED = "Licensed (Expiry: 2999-1-31 11:32:2 GMT)"


@pytest.mark.parametrize(
    ("states", "outcome", "words"),
    [
        (["Licensed"], "PASS", "GPU 00000000:00:01.0: Licensed"),
        ([GRANTED, "Licensed (Expiry: Permanent)"], "PASS", "GPU 00000000:01:01.0: Licensed (Expiry: Permanent)"),
        (["Licensed (Expiry: N/A)"], "PASS", "N/A"),
        ([GRANTED, "Licensed (Expiry: 2023-1-31 11:32:22 GMT)"], "FAIL", "of GPU 00000000:01:01.0 (A100-10C): Licensed (Exp"),
        ([GRANTED, "Unlicensed (Restricted)"], "FAIL", "of GPU 00000000:01:01.0 (A100-10C): Unlicensed (Restricted). Look"),
        ([GRANTED, None], "FAIL", "GPU 00000000:01:01.0 (A100-10C): missing"),
        (["Licensed (Expiry: ERR!)"], "FAIL", "ERR!"),
        (["Licensed (Expiry: 2999-13-1 0:0:0 GMT)"], "FAIL", "2999-13-1"),
        (["Unlicensed"], "FAIL", "Unlicensed"),
        (["Unknown"], "FAIL", "Unknown"),
        ([], "FAIL", "0 of 1 is in nvidia-smi -q"),
    ],
)  # fmt: skip
def test_a_virtual_gpu_without_a_licence_that_is_valid_now_is_named(tmp_path, states, outcome, words):
    parts = [PART % (n, "A100-10C") + (STATUS % state if state else "") for n, state in enumerate(states)]
    listed = "".join(f"GPU {n}: A100-10C (UUID: GPU-{n})\n" for n in range(len(states) or 1))
    answers = {"nvidia-smi -L": (0, listed), "nvidia-smi -q": (0, "Attached GPUs : 2\n" + "".join(parts))}
    check(ask("vgpu_licensed", host(tmp_path, gpus=len(states) or 1, answers=answers)), outcome, words)


# Legacy: as printed with GeForce GT 1030 and 610.43.02; the others as nv.c, nv-pci.c and osapi.c of the driver's source print them (595.45.04).
@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["The NVIDIA GeForce GT 1030 GPU installed in this system is", "  supported through the NVIDIA 580.xx Legacy drivers. Please"], "a GPU requires an older branch of the driver"),
        (["The NVIDIA GPU 0000:3b:00.0", "(PCI ID: 10de:1db6) installed in this system has", "fallen off the bus and is not responding to commands."], "a GPU has fallen off the bus"),
        (["The NVIDIA probe routine was not called for 1 device(s).", "This can occur when another driver was loaded and "], "another driver has the GPU"),
        (["This PCI I/O region assigned to your NVIDIA device is invalid:", "BAR1 is 0M @ 0x0 (PCI:0000:3b:00.0)"], "the firmware gave a GPU no valid PCI region"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "state", [(9, "NVIDIA-SMI has failed because it couldn't communicate …"), (6, "No devices were found")]
)
def test_why_the_driver_took_no_gpu_is_in_the_answer(tmp_path, lines, words, state):
    log = "".join(f"[    9.1] NVRM: {line}\n" for line in lines)
    machine = host(tmp_path, answers={"nvidia-smi": state, "nvidia-smi -L": state, "dmesg": (0, log)})
    for question in ("gpus_by_driver_as_declared", "driver_runs"):
        check(ask(question, machine), "FAIL", f"The kernel's log says why: {words}")
