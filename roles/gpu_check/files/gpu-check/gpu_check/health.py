# -*- coding: utf-8 -*-
"""Questions about the cards themselves: memory, errors, links."""

from __future__ import absolute_import, division, print_function

import re

from gpu_check.questions import Fail, NotReported, Skip, check, host_check

# Xids after which the GPU computes on. NVIDIA's device plugin for Kubernetes ignores 13, 31, 43, 45, 68 and 109
# (github.com/NVIDIA/k8s-device-plugin, internal/rm/health.go). For the others NVIDIA's catalog has RESTART_APP or IGNORE as the immediate action
# (docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html); what 63 announces is asked by retired_pages and recovery_action.
MILD_XIDS = {
    13: "graphics engine exception",
    31: "memory page fault",
    32: "invalid push buffer",
    43: "GPU stopped processing",
    45: "preemptive cleanup",
    63: "memory will be remapped",
    68: "video processor exception",
    94: "contained memory error",
    109: "context switch timeout",
    137: "NVLink access without right",
}
RECOVERY_XID = 154  # its text says what the driver asks for now
# A switch's error is three lines: its text, "Severity …" and "Data {…" (github.com/NVIDIA/open-gpu-kernel-modules, src/common/nvswitch/kernel/error_nvswitch.c).
SXID = r"SXid \((.*?)\): (\d+), (?!Severity \d|Data \{)(.*)"

RESETS = ("reset_status.reset_required", "reset_status.drain_and_reset_recommended")


def each(rows):
    return "; ".join("GPU %s: %s" % tuple(row) for row in rows)


@check
def ecc_errors(host):
    """No uncorrected ECC errors since boot"""
    host.requires_gpu()
    rows = host.query("index", "ecc.errors.uncorrected.volatile.total")
    sick = [row for row in rows if row[1].isdigit() and int(row[1]) > 0]
    if sick:
        raise Fail(
            "A GPU with uncorrected memory errors computes nonsense: drain the host, reset or replace the card; found %s."
            % each(sick)
        )
    return each(rows)


# In --query-gpu from a branch between 535 and 580 on; before, in a switch of its own that GPUs before Ampere do not fill.
MEMORY = (
    ("remapped_rows.failure", "A row of memory could not be remapped: replace the card"),
    (
        "remapped_rows.pending",
        "Rows of memory wait to be remapped: drain the host and reset the GPU (nvidia-smi -r), or reboot",
    ),
    ("retired_pages.pending", "Pages of memory wait to be retired: reboot the host"),
    # docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt
    (
        "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",
        "The SRAM has more errors than NVIDIA allows: replace the card",
    ),
)


def memory_rows(host, field):
    try:
        return host.query("index", field)
    except NotReported:
        if not field.startswith("remapped_rows."):
            raise
        return host.query("gpu_bus_id", field, switch="--query-remapped-rows")


@check
def retired_pages(host):
    """No page of memory waits to be retired, no row to be remapped, and the SRAM has few errors"""
    host.requires_gpu()
    lines = []
    for field, words in MEMORY:
        try:
            rows = memory_rows(host, field)
        except NotReported as reason:
            lines.append(str(reason))
            continue
        sick = [row for row in rows if row[1] in ("Yes", "1")]
        if sick:
            raise Fail("%s; found %s: %s." % (words, field, each(sick)))
        lines.append("%s: %s" % (field, each(rows)))
    return "; ".join(lines)


@check
def inforom(host):
    """The infoROM of each card is intact"""
    host.requires_gpu()
    try:
        rows = host.query("gpu_bus_id", "inforom.checksum_validation")
        corrupted_gpus = ["GPU %s" % row[0] for row in rows if row[1] == "invalid"]
    except NotReported:
        host.query("index")
        corrupted_gpus = ["GPU %s" % address for address in sorted(host.corrupted)]
    if corrupted_gpus:
        raise Fail(
            "The card's own memory for its settings and errors must be intact but is corrupted at %s: retired pages may be lost. "
            "Reboot the host; if it stays, have the card replaced." % ", ".join(corrupted_gpus)
        )
    return "valid"


# hw_slowdown is not asked: it may be reported when the clocks only change (docs.nvidia.com/deploy/nvml-api, clocks event reasons).
SLOWDOWNS = (("hw_thermal_slowdown", "heat"), ("hw_power_brake_slowdown", "power brake"))


@check
def throttling(host):
    """No GPU is slowed down by heat or by its host's power supply"""
    host.requires_gpu()
    try:
        rows = host.query("index", *["clocks_event_reasons." + name for name, _ in SLOWDOWNS])
    except NotReported:  # before 535
        rows = host.query("index", *["clocks_throttle_reasons." + name for name, _ in SLOWDOWNS])
    slow = [(row[0], word) for row in rows for (_, word), cell in zip(SLOWDOWNS, row[1:]) if cell == "Active"]
    if slow:
        raise Fail(
            "A GPU must run at its own clocks but is slowed down to half or less: %s. Look at fans, air flow and power supplies (nvidia-smi -q -d PERFORMANCE)."
            % each(slow)
        )
    return "none"


@check
def recovery_action(host):
    """The driver asks for no reset and no reboot"""
    host.requires_gpu()
    rows = recovery_rows(host)
    waiting = [row for row in rows if row[1] not in ("None", "N/A", "[N/A]")]
    if waiting:
        raise Fail(
            "The driver must ask for nothing but asks for %s. Drain the host and do that; nvidia-smi -r resets a GPU."
            % each(waiting)
        )
    return each(rows)


def recovery_rows(host):
    """Number of each GPU, and what the driver asks for: 535 has two flags for it."""
    try:
        return host.query("index", "gpu_recovery_action")
    except NotReported as reason:
        try:
            flags = host.query("index", *RESETS)
        except NotReported:
            raise reason
    return [[row[0], " and ".join(RESETS[at] for at in (0, 1) if row[1 + at] == "Yes") or "None"] for row in flags]


@host_check
def xid(host):
    """No error of the hardware (Xid, SXid) in the kernel's log"""
    host.requires_gpu()
    status, output = host.run("dmesg")
    if status != 0:
        raise Skip("the kernel's log is not readable here")
    hard, mild = gpu_errors(output)
    for bus, number, text in re.findall(SXID, output):
        match = re.match("Non-fatal|Correctable", text)
        if match:
            mild.append("SXid %s at %s (%s)" % (number, bus, match.group()))
        elif not text.strip().endswith("Deactivated"):  # a warning about heat that ended
            hard.append("SXid %s at %s" % (number, bus))
    if hard:
        raise Fail(
            "The kernel log must be free of errors of the hardware but has %s. Look them up in NVIDIA's Xid catalog "
            "(docs.nvidia.com/deploy/xid-errors); 48, 74, 79, 95 mean the card or its slot."
            % ", ".join(each_once(hard)[:5])
        )
    return "warning: %s" % ", ".join(each_once(mild)[:5]) if mild else "none"


def gpu_errors(output):
    """The Xids of the kernel's log: those of the hardware, and those after which the GPU computes on."""
    hard, mild, recovery = [], [], {}
    for bus, number, text in re.findall(r"NVRM: Xid \((.*?)\): (\d+)(.*)", output):
        name = "Xid %s at %s" % (number, bus)
        if int(number) == RECOVERY_XID:
            recovery[name] = re.findall(r"\(([^()]*)\)", text)[-1:]  # the last one of a GPU is valid
        elif int(number) in MILD_XIDS:
            mild.append("%s (%s)" % (name, MILD_XIDS[int(number)]))
        else:
            hard.append(name)
    hard += ["%s (%s)" % (name, "".join(action)) for name, action in sorted(recovery.items()) if action != ["None"]]
    return hard, mild


def each_once(names):
    return [name for at, name in enumerate(names) if name not in names[:at]]


@check
def pcie_width(host):
    """PCIe links are as wide as they can be"""
    host.requires_gpu()
    narrow = [
        row
        for row in host.query("index", "pcie.link.width.current", "pcie.link.width.max")
        if row[1].isdigit() and row[2].isdigit() and int(row[1]) < int(row[2])
    ]
    if narrow:
        raise Fail(
            "A link that is narrower than it can be starves the GPU: %s. If the GPU was idle, ask again while it computes; else reseat the card, or look at the slot."
            % "; ".join("GPU %s has x%s of x%s" % tuple(row) for row in narrow)
        )
    return "full"


@host_check
def topology(host):
    """How the GPUs reach each other (nvidia-smi topo -m), and near which memory they are: this never fails"""
    host.requires_gpu()
    nodes = [host.text("/sys/bus/pci/devices/%s/numa_node" % address) for address in host.pci()]
    status, output = host.run("nvidia-smi", "topo", "-m")
    matrix = [line.split()[1:] for line in output.splitlines() if re.match(r"GPU\d", line)] if status == 0 else []
    links = ["%d-%d %s" % (at, to, row[to]) for at, row in enumerate(matrix) for to in range(at + 1, len(matrix))]
    text = ", ".join(links) or ("one GPU" if len(nodes) == 1 else "links are not reported")
    # The kernel has -1 if the firmware names no node.
    return "%s; NUMA node of each: %s" % (text, ", ".join("unknown" if one in (None, "-1") else one for one in nodes))


@host_check
def fabric_manager(host):
    """NVSwitch systems: the fabric manager runs, and the GPUs joined its fabric"""
    switches = host.nvidia_devices()[1]
    if not switches:
        raise Skip("no NVSwitch here")
    status, output = host.run("systemctl", "is-active", "nvidia-fabricmanager")
    if status != 0:
        raise Fail(
            "%d NVSwitches require the fabric manager, but it is %s: CUDA fails with status 802. systemctl status nvidia-fabricmanager; its version must be %s."
            % (switches, output.strip() or "missing", host.library())
        )
    try:
        rows = host.query("index", "fabric.state", "fabric.status")
    except NotReported:
        return "active"
    joined = ("Completed, Success", "N/A, N/A", "[N/A], [N/A]")  # GPUs before Hopper have no state
    waiting = [(row[0], ", ".join(row[1:])) for row in rows if ", ".join(row[1:]) not in joined]
    if waiting:
        raise Fail(
            "Every GPU must have joined the fabric; found %s. Read journalctl -u nvidia-fabricmanager; until then CUDA fails with status 802."
            % each(waiting)
        )
    return "active"
