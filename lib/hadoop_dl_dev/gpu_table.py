"""compat/gpu_devices.yml, written from NVIDIA's list of supported GPUs at every release of its driver, and from pci.ids.

scripts/stack data gpus --modules DIRECTORY --pci-ids FILE --date DAY

DIRECTORY is a git clone of https://github.com/NVIDIA/open-gpu-kernel-modules, FILE is pci.ids of https://github.com/pciutils/pciids.
"""

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ansible.module_utils.hadoop_dl_host import host_system

from hadoop_dl.cli.arguments import Parser
from hadoop_dl.data.compat import DIRECTORY
from hadoop_dl.data.versions import numbers

PAGE = DIRECTORY / "gpu_devices.yml"
# Vulkan beta drivers: numbered into production branches, but released later than the numbers after them.
DEVELOPER = ("515.49.", "525.47.", "535.43.", "550.40.", "570.123.", "580.94.")
# The compute capability of each chip (https://developer.nvidia.com/cuda-gpus; pci.ids names the chip of a device).
CHIPS = {
    **dict.fromkeys(("GK104", "GK106", "GK107"), "3.0"),
    **dict.fromkeys(("GK110", "GK180", "GK208"), "3.5"),
    "GK210": "3.7",
    **dict.fromkeys(("GM107", "GM108"), "5.0"),
    **dict.fromkeys(("GM200", "GM204", "GM206"), "5.2"),
    "GP100": "6.0",
    **dict.fromkeys(("GP102", "GP104", "GP106", "GP107", "GP108"), "6.1"),
    "GV100": "7.0",
    **dict.fromkeys(("TU102", "TU104", "TU106", "TU116", "TU117"), "7.5"),
    "GA100": "8.0",
    **dict.fromkeys(("GA102", "GA103", "GA104", "GA106", "GA107"), "8.6"),
    **dict.fromkeys(("AD102", "AD103", "AD104", "AD106", "AD107"), "8.9"),
    "GH100": "9.0",
    **dict.fromkeys(("GB100", "GB102"), "10.0"),
    **dict.fromkeys(("GB110", "GB112"), "10.3"),
    **dict.fromkeys(("GB202", "GB203", "GB205", "GB206", "GB207"), "12.0"),
}
LONGEST = 140  # characters of a row on one line
NO_GPU = re.compile(r"Audio|USB|UCSI|NVSwitch|Reserved|Initial|INT SKU|FPGA|I2C|Bridge|PCIe host", re.IGNORECASE)
NAMES = "src/nvidia/generated/g_nv_name_released.h"  # device, subsystem, its vendor and name of each product, vGPU types among them
PRODUCT = re.compile(r'\{ 0x(\w{4}), 0x(\w{4}), 0x10DE, "([^"]+)" \}', re.IGNORECASE)
ROW = re.compile(r"^\| (.+?) +\| ([0-9A-F]{4})(?: [0-9A-F]{4} [0-9A-F]{4})? *\|", re.MULTILINE)
HEAD = """\
# Every NVIDIA GPU from Kepler on: PCI device id (vendor 10de), names, chip, compute capability, and the first drivers that know it.
# Written by scripts/stack data gpus from the two sources below; not to be edited by hand.
# first_drivers: one release for each driver branch whose first releases do not know the device. not_in: branches, newer than the
# first, none of whose releases lists it. Neither: known from the first list on (515.48.07), or older than Turing, which that list omits.
# vgpus: from Turing on, the PCI subsystems (vendor 10de) of the vGPU types that are parts of the device.
---
schema: 1
subject: gpu_devices
checked: "{checked}"
read:
  - source: https://github.com/NVIDIA/open-gpu-kernel-modules
    until: "{driver}"
  - source: https://github.com/pciutils/pciids/blob/master/pci.ids
    until: "{ids}"
devices:
"""


@dataclass
class Device:
    """One PCI device: its names, the first the one to say, and what each driver branch lists."""

    pci_id: str
    chip: str = ""
    names: list[str] = field(default_factory=list)
    first_drivers: list[str] = field(default_factory=list)
    not_in: list[str] = field(default_factory=list)
    vgpus: list[str] = field(default_factory=list)

    def line(self) -> str:
        parts = [f'pci_id: "10de:{self.pci_id}"', f"names: [{', '.join(map(quoted, self.names))}]"]
        parts += [f"chip: {self.chip}", f'cc: "{CHIPS[self.chip]}"']
        for name in ("first_drivers", "not_in", "vgpus"):
            values = getattr(self, name)
            if values:
                parts.append(f"{name}: [{', '.join(map(quoted, values))}]")
        line = f"  - {{{', '.join(parts)}}}"
        return line if len(line) <= LONGEST else f"  - {{{(',' + chr(10) + '     ').join(parts)}}}"


def quoted(text: str) -> str:
    return f'"{text}"'


def git(directory: Path, *arguments: str) -> str:
    command = ["git", "-C", str(directory), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def releases(modules: Path) -> list[str]:
    """The releases in the clone, oldest first, without those for developers."""
    tags = [tag for tag in git(modules, "tag").split() if re.fullmatch(r"\d+(\.\d+)+", tag)]
    return sorted((tag for tag in tags if not tag.startswith(DEVELOPER)), key=numbers)


def listed_devices(text: str) -> dict[str, list[str]]:
    """The table of a README: names by device id."""
    names: dict[str, list[str]] = {}
    for name, device in ROW.findall(text):
        names.setdefault(device.lower(), []).append(name.removeprefix("NVIDIA ").strip())
    return names


def virtual(text: str) -> dict[str, list[str]]:
    """For each device the subsystems of its vGPU types: each once, those that follow each other as first-last."""
    found: dict[str, list[list[int]]] = {}
    for device, subsystem, name in sorted(PRODUCT.findall(text.lower()), key=lambda row: int(row[1], 16)):
        if not host_system.VGPU.search(name.upper()):
            continue
        spans, number = found.setdefault(device, []), int(subsystem, 16)
        if spans and spans[-1][-1] == number - 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    return {device: ["-".join(f"{number:04x}" for number in span) for span in spans] for device, spans in found.items()}


def support(lists: Mapping[str, Iterable[str]]) -> dict[str, tuple[list[str], list[str]]]:
    """For each device: the first release of each branch that did not know it from its start, and the branches without it.

    Both are empty for a device of the first list. A later release without the row of a device does not count against it.
    """
    branches: dict[str, list[str]] = {}
    for release in sorted(lists, key=numbers):
        branches.setdefault(release.split(".")[0], []).append(release)
    oldest = next(iter(branches.values()))[0]
    rows = {}
    for device in sorted({device for listed in lists.values() for device in listed} - set(lists[oldest])):
        first: list[str] = []
        absent: list[str] = []
        gap = False
        for branch, published in branches.items():
            matches = [release for release in published if device in lists[release]]
            if matches:
                gap = gap or any(device not in lists[release] for release in published[published.index(matches[0]) :])
                if matches[0] != published[0] or not first:
                    first.append(matches[0])
            elif first:
                absent.append(branch)
        rows[device] = (first, [] if gap else absent)
    return rows


def chips(text: str) -> dict[str, tuple[str, str]]:
    """Chip and name of each graphics device of vendor 10de in pci.ids."""
    rows = {}
    section = text.partition("\n10de  ")[2]
    for line in section.splitlines()[1:]:
        if line and not line.startswith(("\t", "#")):
            break  # the next vendor
        match = re.match(r"\t([0-9a-f]{4})  ([A-Z]{2}\d{3})[A-Z]*(?: / GN[\w-]+)?(?: \[(.+)\])?\s*$", line)
        if match and match[2] in CHIPS and match[3] and not NO_GPU.search(match[3]) and match[3] != match[2]:
            rows[match[1]] = (match[2], match[3])
    return rows


def devices(modules: Path, pci_ids: str) -> tuple[list[Device], str]:
    """Every device with a known chip, and the newest release that was read."""
    read = {release: listed_devices(git(modules, "show", f"{release}:README.md")) for release in releases(modules)}
    lists = {release: listed for release, listed in read.items() if listed}  # the first release has no list
    branches, names = support(lists), chips(pci_ids)
    newest = max(lists, key=numbers)
    parts = virtual(git(modules, "show", f"{newest}:{NAMES}"))
    rows = []
    for device in sorted({*names, *(device for listed in lists.values() for device in listed)}):
        chip, own = names.get(device, ("", ""))
        if not chip:
            chip = chip_near(device, names)
        if not chip:
            continue
        listed_names = [name for release in reversed(lists) for name in lists[release].get(device, [])]
        all_names = list(dict.fromkeys([*listed_names[:1], *([own] if own else []), *listed_names]))
        # Turing is older than the list, and mining cards were added to it years after they were supported.
        late = not chip.startswith("TU") and not any("CMP" in name for name in all_names)
        first, absent = branches.get(device, ([], [])) if late else ([], [])
        rows.append(Device(device, chip, all_names, first, absent, parts.get(device, [])))
    return rows, newest


def chip_near(device: str, names: Mapping[str, tuple[str, str]]) -> str:
    """The chip of the devices with the same first three digits, where pci.ids lacks one and they are all of one chip."""
    near = {chip for key, (chip, _) in names.items() if key[:3] == device[:3]}
    return near.pop() if len(near) == 1 else ""


def page(modules: Path, pci_ids: str, checked: str) -> str:
    rows, newest = devices(modules, pci_ids)
    version = re.search(r"^#\s+Version: (\S+)", pci_ids, re.MULTILINE)
    head = HEAD.format(checked=checked, driver=newest, ids=version[1] if version else "unknown")
    return head + "\n".join(device.line() for device in rows) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(prog="stack data gpus", description="Write compat/gpu_devices.yml.", allow_abbrev=False)
    parser.add_argument("--modules", type=Path, required=True, help="a clone of NVIDIA/open-gpu-kernel-modules")
    parser.add_argument("--pci-ids", type=Path, required=True, help="the file pci.ids")
    parser.add_argument("--date", required=True, help="the day on which both were fetched, as 2026-11-21")
    options = parser.parse_args(arguments)
    text = page(options.modules, options.pci_ids.read_text(encoding="utf-8"), options.date)
    PAGE.write_text(text, encoding="utf-8")
    print(f"{PAGE.name}: {text.count('pci_id:')} devices written.")
    return 0
