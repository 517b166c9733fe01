# -*- coding: utf-8 -*-
"""Questions about the cards themselves: memory, errors, links."""

from __future__ import absolute_import, division, print_function

import re

from gpu_check.questions import Fail, NotReported, Skip, check, host_check

# Errors of a program: the GPU stays healthy. NVIDIA's device plugin for Kubernetes ignores these and takes every other Xid
# for a fault of the GPU (github.com/NVIDIA/k8s-device-plugin, internal/rm/health.go).
APPLICATION_XIDS = {
    13: "graphics engine exception",
    31: "memory page fault",
    43: "GPU stopped processing",
    45: "preemptive cleanup",
    68: "video processor exception",
    109: "context switch timeout",
}

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
    """No page of memory waits to be retired, no row to be remapped"""
    host.requires_gpu()
    found = []
    for field, words in MEMORY:
        try:
            rows = memory_rows(host, field)
        except NotReported as reason:
            found.append(str(reason))
            continue
        sick = [row for row in rows if row[1] in ("Yes", "1")]
        if sick:
            raise Fail("%s; found %s: %s." % (words, field, each(sick)))
        found.append("%s: %s" % (field, each(rows)))
    return "; ".join(found)


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
    found = [(bus, int(number)) for bus, number in re.findall(r"NVRM: Xid \((.*?)\): (\d+)", output)]
    hardware = ["Xid %d at %s" % (number, bus) for bus, number in found if number not in APPLICATION_XIDS]
    switches = re.findall(r"SXid \((.*?)\): (\d+), (Non-fatal)?", output)
    hardware += ["SXid %s at %s" % (number, bus) for bus, number, mild in switches if not mild]
    if hardware:
        raise Fail(
            "The kernel log must be free of errors of the hardware but has %s. Look them up in NVIDIA's Xid catalog "
            "(docs.nvidia.com/deploy/xid-errors); 48, 74, 79, 95 mean the card or its slot." % ", ".join(hardware[:5])
        )
    mild = sorted(
        set("Xid %d at %s (%s)" % (number, bus, APPLICATION_XIDS[number]) for bus, number in found)
        | set("SXid %s at %s (non-fatal)" % (number, bus) for bus, number, _ in switches)
    )
    return "warning, a program's fault: %s" % ", ".join(mild[:5]) if mild else "none"


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
def fabric_manager(host):
    """NVSwitch systems: the fabric manager runs, and the GPUs joined its fabric"""
    switches = [
        path
        for path in host.glob("/sys/bus/pci/devices/*")
        if host.text(path + "/vendor") == "0x10de" and (host.text(path + "/class") or "").startswith("0x0680")
    ]
    if not switches:
        raise Skip("no NVSwitch here")
    status, output = host.run("systemctl", "is-active", "nvidia-fabricmanager")
    if status != 0:
        raise Fail(
            "%d NVSwitches require the fabric manager, but it is %s: CUDA fails with status 802. systemctl status nvidia-fabricmanager; its version must be %s."
            % (len(switches), output.strip() or "missing", host.library())
        )
    try:
        waiting = [row for row in host.query("index", "fabric.state") if row[1] == "In Progress"]
    except NotReported:
        return "active"
    if waiting:
        raise Fail(
            "Every GPU must have joined the fabric; found %s. Read journalctl -u nvidia-fabricmanager; until then CUDA fails with status 802."
            % each(waiting)
        )
    return "active"
