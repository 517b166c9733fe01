"""Questions about the cards themselves: memory, errors, links."""

import calendar
import re
import time

from ansible.module_utils.hadoop_dl_host import host_system

from gpu_check.cells import ABSENT, sick
from gpu_check.kernel_log import gpu_errors
from gpu_check.questions import Fail, NotReported, Skip, check, host_check
from gpu_check.sentences import smi_problem

RESETS = ("reset_status.reset_required", "reset_status.drain_and_reset_recommended")


def each(rows):
    return "; ".join("GPU %s: %s" % tuple(row) for row in rows)


@check
def ecc_errors(host):
    """No uncorrected ECC errors since boot"""
    host.requires_gpu()
    rows = host.query("index", "ecc.errors.uncorrected.volatile.total")
    if sick(rows, "0"):
        raise Fail(
            "A GPU must have no uncorrected memory errors since its last reset; found %s. Drain the host and reset the GPU (nvidia-smi -r), or "
            "reboot; if they come again, replace the card." % each(sick(rows, "0"))
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
    lines, unknown = [], []
    for field, words in MEMORY:
        try:
            rows = memory_rows(host, field)
        except NotReported as reason:
            unknown.append(str(reason))
            continue
        if sick(rows, "No", "0"):
            raise Fail("%s; found %s: %s." % (words, field, each(sick(rows, "No", "0"))))
        lines.append("%s: %s" % (field, each(rows)))
    if not lines:
        raise Skip("; ".join(unknown))
    return "; ".join(lines + unknown)


@check
def inforom(host):
    """The infoROM of each card is intact"""
    host.requires_gpu()
    try:
        rows = host.query("gpu_bus_id", "inforom.checksum_validation")
        corrupted_gpus = ["GPU %s" % row[0] for row in sick(rows, "valid")]
    except NotReported:
        host.query("index")
        corrupted_gpus = []
    # The card's field may say N/A while nvidia-smi warns and ends with status 14.
    corrupted_gpus = corrupted_gpus or ["GPU %s" % address for address in sorted(host.corrupted)]
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
    good = ABSENT + ("Not Active",)
    slow = [(row[0], word) for row in rows for (_, word), cell in zip(SLOWDOWNS, row[1:]) if cell not in good]
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
    waiting = sick(rows, "None")
    if waiting:
        raise Fail(
            "The driver must ask for nothing but asks for %s. Drain the host and do that%s."
            % (each(waiting), "; nvidia-smi -r resets a GPU" if "reset" in each(waiting).lower() else "")
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
    good = ABSENT + ("No", "0")
    demands = [(row, " and ".join(RESETS[at] for at in (0, 1) if row[1 + at] not in good)) for row in flags]
    return [[row[0], words or (row[1] if row[1] in ABSENT else "None")] for row, words in demands]


@host_check
def xid(host):
    """No error of the hardware (Xid, SXid) in the kernel's log"""
    host.requires_gpu()
    status, output = host.run("dmesg")
    if status != 0:
        raise Skip("the kernel's log is not readable here")
    hard, mild = gpu_errors(output)
    if hard:
        raise Fail(
            "The kernel log must be free of errors of the hardware but has %s. Words in capitals are the immediate action "
            "of NVIDIA's Xid catalog (docs.nvidia.com/deploy/xid-errors), which explains each." % ", ".join(hard[:5])
        )
    return "warning: %s" % ", ".join(mild[:5]) if mild else "none"


@check
def vgpu_licensed(host):
    """A virtual GPU (vGPU) has its licence"""
    host.requires_gpu()
    if not host.virtual():
        raise Skip("no virtual GPU here")
    status, output = host.run("nvidia-smi", "-q")
    if status != 0:
        raise Fail(smi_problem(host, status, output))
    rows = [licence(section) for section in re.split(r"(?m)^GPU (?=[0-9A-Fa-f]+:)", output)[1:]]
    rows = [row for row in rows if host_system.VGPU.search(row[1])]
    unlicensed = ["GPU %s (%s): %s" % row for row in rows if not is_licensed(row[2])]
    if unlicensed or len(rows) < len(host.virtual()):
        raise Fail(
            "Every virtual GPU requires a licence that has not expired, or CUDA is slowed down and then refused; License Status of %s. Look at "
            "/etc/nvidia/gridd.conf and journalctl -u nvidia-gridd."
            % ("; ".join(unlicensed) or "%d of %d is in nvidia-smi -q" % (len(rows), len(host.virtual())))
        )
    return "; ".join("GPU %s: %s" % (row[0], row[2]) for row in rows)


def licence(section):
    """Address, name and License Status of a GPU in nvidia-smi -q."""
    name, status = [
        re.search(r"^\s*%s\s*: (.*?)\s*$" % title, section, re.M) for title in ("Product Name", "License Status")
    ]
    return section.split()[0], name.group(1) if name else "", status.group(1) if status else "missing"


def is_licensed(status):
    """The other words are Unlicensed, with Restricted or Unrestricted, and Unknown; an expiry that was not read is ERR!.

    github.com/NVIDIA/DCGM, dcgmlib/src/DcgmVgpu.cpp.
    """
    match = re.match(r"Licensed(?: \(Expiry: (?:Permanent|N/A|Not Available|(\S+ \S+) GMT)\))?$", status)
    try:
        end = match.group(1) and calendar.timegm(time.strptime(match.group(1), "%Y-%m-%d %H:%M:%S"))
    except (AttributeError, ValueError):
        return False
    return not end or end > time.time()


@check
def pcie_width(host):
    """PCIe links are as wide as they can be"""
    host.requires_gpu()
    rows = host.query("index", "pcie.link.width.current", "pcie.link.width.max")
    rows = [row for row in rows if not set(row[1:]) & set(ABSENT)]
    narrow = [row for row in rows if int(row[1]) < int(row[2])]
    if not rows:
        raise Skip("no GPU here reports the width of its link")
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


def manages_a_fabric(host):
    """NVSwitches on the PCI bus, or from NVLink 5 on bridges to them that are InfiniBand devices.

    SW_MNG in their vital product data: github.com/NVIDIA/gpu-driver-container, rhel10/nvidia-driver.
    """
    bridges = [host.text(path) or "" for path in host.glob("/sys/class/infiniband/*/device/vpd")]
    return host.nvidia_devices()[1] or len([text for text in bridges if "SW_MNG" in text])


@host_check
def fabric_manager(host):
    """NVSwitch systems: the fabric manager runs, and the GPUs joined its fabric"""
    host.requires_gpu()
    switches = manages_a_fabric(host)
    status, output = host.run("systemctl", "is-active", "nvidia-fabricmanager")
    unit = "active" if status == 0 else output.strip() or "missing"
    if switches and status != 0:
        raise Fail(
            "%d NVSwitches require the fabric manager, but it is %s: CUDA fails with status 802. systemctl status nvidia-fabricmanager; its version must be %s."
            % (switches, output.strip() or "missing", host.library())
        )
    try:
        rows = host.query("index", "fabric.state", "fabric.status")
    except NotReported:
        rows = []
    fabric = [row for row in rows if row[1] not in ABSENT]  # GPUs before Hopper, and those without NVLink, are in none
    waiting = [(row[0], ", ".join(row[1:])) for row in fabric if tuple(row[1:]) != ("Completed", "Success")]
    if waiting:
        raise Fail(
            "Every GPU must have joined the fabric; found %s, and the fabric manager is %s. Read journalctl -u nvidia-fabricmanager (from B200 on "
            "nvlsm must run as well); until then CUDA fails with status 802." % (each(waiting), unit)
        )
    if not switches and not fabric:
        raise Skip("no NVSwitch here, and no GPU that is in a fabric")
    return unit if switches else "joined"
