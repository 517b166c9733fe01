# -*- coding: utf-8 -*-
"""What the kernel's log says about GPUs: errors of cards (Xid) and of switches (SXid), and why the driver took no card."""

import re

from gpu_check.xid_catalog import DATE, ROWS

# Immediate actions of NVIDIA's catalogue after which the GPU computes on.
HARMLESS = ("IGNORE", "RESTART_APP")
# Of Xid 45 the catalogue says to follow the other Xid. 109 is RESET_GPU there, but an error of a program for NVIDIA's device plugin
# (github.com/NVIDIA/k8s-device-plugin, internal/rm/health.go); a reset that the driver asks for is Xid 154, and recovery_action has it.
OF_PROGRAMS = (45, 109)
NVLINK = range(144, 151)  # one code for events of every severity; the text has the word
RECOVERY = 154  # its text says what the driver asks for now
# Immediate actions without which the GPU computes nothing more; "contact support" and the workflows leave that open.
GRAVE = ("RESET_GPU", "RESTART_BM", "RESTART_VM", "CHECK_MECHANICALS")
LOADED = "NVRM: loading NVIDIA UNIX"  # what the driver prints when it is loaded (kernel-open/nvidia/nv.c)
XID = r"NVRM: Xid \((.*?)\): (\d+)(.*)"
# A switch's error is three lines: its text, "Severity …" and "Data {…" (github.com/NVIDIA/open-gpu-kernel-modules, src/common/nvswitch/kernel/error_nvswitch.c).
SXID = r"SXid \((.*?)\): (\d+), (?!Severity \d|Data \{)(.*)"
# Why the driver did not take a GPU, the more exact reason first: kernel-open/nvidia/nv.c, nv-pci.c and
# src/nvidia/arch/nvalloc/unix/src/osinit.c of github.com/NVIDIA/open-gpu-kernel-modules.
SENTENCES = (
    (
        "requires use of the NVIDIA open kernel modules",
        "a GPU requires the open kernel module, and the proprietary one is installed. Set nvidia_driver_module: open.",
    ),
    (
        "does not include the required GPU",
        "a GPU is older than Turing and requires the proprietary kernel module, and the open one is installed. Set nvidia_driver_module: proprietary.",
    ),
    (
        "Legacy drivers",
        "a GPU requires an older branch of the driver (Legacy drivers). Set nvidia_driver_version to one of it.",
    ),
    (
        "fallen off the bus and is not responding",
        "a GPU has fallen off the bus. Power the host off and on; if it stays, reseat or replace the card.",
    ),
    (
        "probe routine was not called",
        "another driver has the GPU (probe routine was not called). lspci -k -d 10de: names it; unload it.",
    ),
    (
        "PCI I/O region assigned to your NVIDIA device is invalid",
        "the firmware gave a GPU no valid PCI region. Turn on Above 4G Decoding there, or boot with pci=realloc.",
    ),
    (
        "RmInitAdapter failed",
        "the driver could not start a GPU (RmInitAdapter failed). Run playbooks/gpu.yml, so that driver and GSP firmware are of one version; power the host "
        "off and on; if it stays, replace the card.",
    ),
)


def codes(text):
    """The numbers of "37-38, 60"."""
    for part in text.split(", "):
        first, _, last = part.partition("-")
        for code in range(int(first), int(last or first) + 1):
            yield code


CATALOGUE = dict((code, row) for row in ROWS for code in codes(row["codes"]))


def reasons(host):
    """Why the driver took no GPU, in the kernel's words; None if its log is not readable or says nothing."""
    status, output = host.run("dmesg")
    for words, sentence in SENTENCES if status == 0 else ():
        if words in output:
            return "The kernel's log says why: " + sentence
    return None


def xid(code, text):
    """Whether the GPU computes on after this event, and what it is."""
    row = CATALOGUE.get(code)
    if row is None:
        return True, "not in NVIDIA's catalogue of %s" % DATE
    name, action = row["name"] or "unused", row["action"]
    if code in NVLINK:
        mild = re.search(r"\bNon-?fatal\b", text) is not None
        return mild, name + (", Nonfatal" if mild else "")
    mild = action in HARMLESS or code in OF_PROGRAMS or row.get("informational", False)
    return mild, name if mild else "%s: %s" % (name, action or "no action named")


def gpu_errors(output):
    """Xids and SXids: those of the hardware, and those after which the GPU computes on."""
    errors, recovery = {True: [], False: []}, {}
    for bus, number, text in re.findall(XID, output):
        if int(number) == RECOVERY:
            recovery[bus] = re.findall(r"\(([^()]*)\)", text)[-1:]  # the last one of a GPU is valid
            continue
        mild, name = xid(int(number), text)
        errors[mild].append("Xid %s at %s (%s)" % (number, bus, name))
    for bus, number, text in re.findall(SXID, output):
        mild = re.match("Non-fatal|Correctable", text)
        if mild:
            errors[True].append("SXid %s at %s (%s)" % (number, bus, mild.group()))
        elif not text.strip().endswith("Deactivated"):  # a warning about heat that ended
            errors[False].append("SXid %s at %s" % (number, bus))
    for bus, action in sorted(recovery.items()):
        if action != ["None"]:
            errors[False].append("Xid %d at %s (%s)" % (RECOVERY, bus, "".join(action)))
    return each_once(errors[False]), each_once(errors[True])


def grave(output):
    """Xids after the driver was loaded whose GPU requires a reset, a reboot or a hand."""
    recent = (output or "")[max(0, (output or "").rfind(LOADED)) :]
    rows = [(CATALOGUE.get(int(code), {}), int(code), bus) for bus, code, _ in re.findall(XID, recent)]
    return each_once(
        [
            "Xid %d at %s (%s: %s)" % (code, bus, row["name"] or "unused", row["action"])
            for row, code, bus in rows
            if row.get("action") in GRAVE and code not in OF_PROGRAMS
        ]
    )


def each_once(names):
    return [name for at, name in enumerate(names) if name not in names[:at]]
