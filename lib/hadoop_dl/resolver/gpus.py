"""GPUs by the names that people use: P100, `Tesla P100-PCIE-16GB` as nvidia-smi prints it, a PCI id, or cc=8.6."""

import difflib
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache

from ansible.module_utils.hadoop_dl_host import host_system

from hadoop_dl.data.compat import Compat, Row
from hadoop_dl.resolver.versions import cc, listed, version

# Words around a name; a Quadro or GeForce may be named without that word.
NOISE = {"nvidia", "tesla", "gpu", "corporation", "graphics", "card", "ac", "rev", "a1"}
SERIES = {"geforce", "quadro"}
PREFIXES = {*SERIES, "rtx", "gtx"}  # left out as well, if a name is of no card with them: 3090, A6000
TOGETHER = re.compile(r"(geforce|quadro|tesla|rtx|gtx)(?=\w)|(?<=\d)(?=(?:ti|super)\b)")  # 1080Ti, RTX6000
MOST_MEANT = 8
OTHERS = {"amd", "radeon", "instinct", "intel", "matrox", "aspeed"}
ASK = "nvidia-smi --query-gpu=name,compute_cap --format=csv"
MIG = re.compile(r"\s*\bMIG\b.*$", re.IGNORECASE)
VGPU = re.compile(r"(-\d+)?" + host_system.VGPU.pattern)  # with the part of a card that MIG divides: H100L-2-24C
# What vGPU types call a card with another name (docs.nvidia.com/vgpu, "Virtual GPU Types"; RTX 6000 alone would be ambiguous).
VIRTUAL = {"DC": "RTX PRO 4500 Blackwell Server Edition", "RTX6000": "Quadro RTX 6000", "RTX6000P": "Quadro RTX 6000"}


@dataclass(frozen=True)
class Device:
    """One PCI device in NVIDIA's lists: the first driver that supports it, for each branch whose first release did not."""

    pci_id: str
    name: str
    first_drivers: tuple[str, ...]
    not_in: tuple[str, ...]

    def least(self) -> str | None:
        return self.first_drivers[0] if self.first_drivers else None

    def known_by(self, driver: str) -> bool:
        """Whether a driver of a branch that NVIDIA's lists cover supports it."""
        branch = driver.partition(".")[0]
        own = [first for first in self.first_drivers if first.partition(".")[0] == branch]
        if own:
            return version(driver) >= version(own[0])
        return branch not in self.not_in and (
            not self.first_drivers or version(driver) > version(self.first_drivers[0])
        )


@dataclass(frozen=True)
class Gpu:
    """One model: its name in messages, its compute capability and architecture, its PCI devices, and the sources.

    `unlisted` is an NVIDIA device of which only the capability is known; `mig` says that a slice of the GPU was named;
    `virtual` is the vGPU type that was named, a part of the GPU that a hypervisor gives to a guest; `arm` says that it is soldered to an
    Arm CPU; `subnet_manager` that it requires NVIDIA's nvlsm, which no role installs.
    """

    name: str
    cc: str
    architecture: str
    sources: tuple[str, ...]
    devices: tuple[Device, ...] = ()
    unlisted: bool = False
    mig: bool = False
    virtual: str = ""
    arm: bool = False
    subnet_manager: bool = False

    @property
    def capability(self) -> tuple[int, int]:
        return cc(self.cc)

    @property
    def least_driver(self) -> str | None:
        """The oldest driver with which each device of the model works."""
        drivers = [text for text in (device.least() for device in self.devices) if text]
        return max(drivers, key=version) if drivers else None

    @property
    def first_driver(self) -> str | None:
        """The oldest driver with which any device of the model works."""
        drivers = [device.least() for device in self.devices]
        return min((text for text in drivers if text), key=version) if drivers and all(drivers) else None


@dataclass(frozen=True)
class UnknownGpu:
    """A text that names no known model; `why` is a sentence, `near` the names to try.

    `meant`: if it names several, their PCI ids, each with a name and its architecture.
    """

    name: str
    why: str
    near: tuple[str, ...]
    meant: tuple[tuple[str, str], ...] = ()
    by_capability: bool = False  # may be an NVIDIA GPU that its compute capability describes


@dataclass(frozen=True)
class Entry:
    """A row of the devices, with the words of each of its names."""

    row: Row
    names: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]


def words(text: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9]+", text.lower()) if word and word not in NOISE]


def common_names(row: Row) -> list[str]:
    """The usual names of a device: `P100` for `Tesla P100 PCIe 16GB`, two for `A2 / A16`; the full name for a workstation card."""
    name = re.sub(r"^Tesla ", "", str(row["name"]))
    if not re.match(r"[A-Z]+\d", name):
        return [name]
    firsts = [part.split(" ")[0] for part in name.split(" / ")]
    return [first for first in firsts if first[0].isalpha()]


@lru_cache(maxsize=8)
def entries(compat: Compat) -> dict[str, Entry]:
    """All devices by PCI id; the names that this project gives to those of data centers come first."""
    own_rows = {row["pci_id"]: row for row in compat.rows("gpus", "devices")}
    entries_by_id = {}
    for row in compat.rows("gpu_devices", "devices"):
        own = own_rows.get(row["pci_id"])
        names = tuple(dict.fromkeys([*([own["name"]] if own else []), *row["names"]]))
        entries_by_id[row["pci_id"]] = Entry(row, names, tuple(tuple(words(name)) for name in names))
    return entries_by_id


@lru_cache(maxsize=8)
def model_names(compat: Compat) -> tuple[str, ...]:
    """The names of all known models, newest architecture first, those of data centers before the rest."""
    rows = sorted(compat.rows("gpus", "devices"), key=lambda row: cc(row["cc"]), reverse=True)
    gpus = sorted(entries(compat).values(), key=lambda entry: cc(entry.row["cc"]), reverse=True)
    return tuple(dict.fromkeys([name for row in rows for name in common_names(row)] + [gpu.names[0] for gpu in gpus]))


def fits(name_words: Sequence[str], model_words: Sequence[str], optional: Set[str] = SERIES) -> bool:
    """Whether every word is in the name; the generation of SXM may be left out.

    A name must be complete up to its number: an RTX 6000 is no RTX PRO 6000.
    """
    number = next((place for place, word in enumerate(model_words) if re.search(r"\d", word)), len(model_words) - 1)
    return set(model_words[: number + 1]) - optional <= set(name_words) and all(
        word in model_words or (word == "sxm" and any(part.startswith("sxm") for part in model_words))
        for word in name_words
    )


def find_gpu(compat: Compat, text: str) -> Gpu | UnknownGpu:
    """The model that a text names."""
    return _find(compat, text.strip())


@lru_cache(maxsize=4096)
def _find(compat: Compat, text: str) -> Gpu | UnknownGpu:
    plain = MIG.sub("", text)
    if plain != text:
        gpu = (
            _find(compat, plain)
            if plain
            else UnknownGpu(text, f"{text} names a slice and not its GPU.", ("A100 MIG 1g.5gb",))
        )
        return replace(gpu, mig=True) if isinstance(gpu, Gpu) else gpu
    if host_system.VGPU.search(text):
        return of_card(compat, text)
    capability = re.search(r"(?:^|\s)(?:cc|sm)[=_ ]?(\d+)\.?(\d)$", text.lower())
    if capability:
        pci = re.match(r"10de:[0-9a-f]{4}", text.lower())
        listed = entries(compat).get(pci[0]) if pci else None
        return (
            make(compat, pci[0], [listed])
            if pci and listed
            else of_capability(compat, text, f"{capability[1]}.{capability[2]}")
        )
    pci = re.fullmatch(r"(?:pci:)?(?:(?:0x)?([0-9a-f]{4})[:/])?(0x)?([0-9a-f]{4})", text.lower())
    sure = pci is not None and (pci[1] is not None or pci[2] is not None)
    bracket = re.search(r"\[(.+)\]", text)  # lspci: NVIDIA Corporation GP100GL [Tesla P100 PCIe 16GB] (rev a1)
    name_words = words(bracket[1] if bracket else text)
    matches = [] if sure or not name_words else by_name(compat, name_words)
    whole = re.sub(r"^nvidia ", "", text.lower())
    if whole != text.lower():  # nvidia-smi prints the complete name of one product
        matches = [entry for entry in matches if whole in (name.lower() for name in entry.names)] or matches
    if pci and not matches:
        entry = entries(compat).get(f"10de:{pci[3]}") if pci[1] in (None, "10de") else None
        if entry:
            return make(compat, text, [entry])
        if pci[1] not in (None, "10de"):
            return UnknownGpu(
                text, f"The PCI device {text} is not NVIDIA's (vendor 10de), and only those run CUDA.", ()
            )
        if sure:
            return unknown_id(compat, text, pci[3])
    if OTHERS & set(words(text)):
        return UnknownGpu(text, f"{text} is not NVIDIA's, and only those run CUDA.", ())
    if matches and len({entry.row["cc"] for entry in matches}) == 1:
        return make(compat, text, matches)
    if matches:
        return ambiguous(compat, text, matches)
    return unknown_name(compat, text, name_words)


def of_card(compat: Compat, text: str) -> Gpu | UnknownGpu:
    """The card that a vGPU type such as GRID V100D-8Q is a part of; one or two letters at its end tell forms of one model apart."""
    card = VGPU.sub("", re.sub(r"^(NVIDIA |GRID )+", "", text))
    names = (VIRTUAL.get(card, card), re.sub("[A-Z]$", "", card), re.sub("[A-Z]{2}$", "", card).strip())
    gpu = next((gpu for name in names if isinstance(gpu := _find(compat, name), Gpu)), None)
    if gpu:
        return replace(gpu, virtual=text)
    return UnknownGpu(
        text, f"{text} is a virtual GPU (vGPU), and no card called {card} is in compat/gpu_devices.yml.", ()
    )


def by_name(compat: Compat, name_words: Sequence[str]) -> list[Entry]:
    """The devices that fit a name: with more than the model's number, those of exactly that name before the rest."""
    matches = [entry for entry in entries(compat).values() if any(fits(name_words, name) for name in entry.words)]
    if not matches:
        return loosely(compat, words(TOGETHER.sub(r"\1 ", " ".join(name_words))))
    return of_exactly(name_words, matches, SERIES) if len(name_words) > 1 else matches


def loosely(compat: Compat, name_words: Sequence[str]) -> list[Entry]:
    """The devices that a name means without RTX and GTX, or else without the letter at its end: a K40 is a K40m, K40c or K40s."""
    every = entries(compat).values()
    if not any(re.search(r"\d", word) for word in name_words):  # Titan X
        matches = [entry for entry in every if any(set(name_words) <= set(name) for name in entry.words)]
        return matches if len(name_words) > 1 and len(matches) <= MOST_MEANT else []
    matches = [entry for entry in every if any(fits(name_words, name, PREFIXES) for name in entry.words)]
    if matches:
        return of_exactly(name_words, matches, PREFIXES)

    def short(model_words: Sequence[str]) -> list[str]:
        return [re.sub(r"(?<=\d)[a-z]$", "", word) for word in model_words]

    return [entry for entry in every if any(fits(name_words, short(name)) for name in entry.words)]


def of_exactly(name_words: Sequence[str], matches: list[Entry], optional: Set[str]) -> list[Entry]:
    """Those of exactly this name, if all are of one generation: a 3090 is no 3090 Ti."""
    exact = [
        entry for entry in matches if any(set(name) - optional == set(name_words) - optional for name in entry.words)
    ]
    return exact if exact and len({entry.row["cc"] for entry in matches}) == 1 else matches


def ambiguous(compat: Compat, text: str, matches: Sequence[Entry]) -> UnknownGpu:
    """A name of GPUs with different code: each is named with its PCI id."""
    alike: dict[tuple[str, str], Entry] = {}
    for entry in matches:
        alike.setdefault((entry.names[0], entry.row["cc"]), entry)
    alternatives = tuple(
        (entry.row["pci_id"], f"{name}, {architecture(compat, capability)['architecture']}")
        for (name, capability), entry in alike.items()
    )[:MOST_MEANT]
    several = listed([f"{means} ({pci_id})" for pci_id, means in alternatives], "or")
    near = tuple(dict.fromkeys(name for name, _ in alike))[:MOST_MEANT]
    return UnknownGpu(text, f"The name {text} may mean any of several GPUs: {several}.", near, alternatives)


def unknown_id(compat: Compat, text: str, device: str) -> UnknownGpu:
    ids = sorted(entries(compat), key=lambda pci_id: abs(int(pci_id[5:], 16) - int(device, 16)))
    why = (
        f"The PCI id {text} is of no GPU in compat/gpu_devices.yml. If you know its compute capability, "
        f"give it: --gpu cc=8.6 (on the host: {ASK})."
    )
    return UnknownGpu(text, why, tuple(sorted(ids[:3])), by_capability=True)


def unknown_name(compat: Compat, text: str, name_words: Sequence[str]) -> UnknownGpu:
    lower = {name.lower(): name for name in model_names(compat)}
    near = tuple(
        dict.fromkeys(
            lower[match]
            for word in ["".join(name_words), *name_words]
            for match in difflib.get_close_matches(word, lower, n=3, cutoff=0.45)
        )
    )[:3] or tuple(lower[match] for match in difflib.get_close_matches("".join(name_words), lower, n=3, cutoff=0.0))
    why = (
        f"No GPU called {text} is in compat/gpu_devices.yml. If you know its compute capability, "
        f"give it: --gpu cc=8.6 (on the host: {ASK})."
    )
    return UnknownGpu(text, why, near, by_capability=True)


def of_capability(compat: Compat, text: str, capability: str) -> Gpu | UnknownGpu:
    """A GPU of which only the compute capability is known."""
    rows = compat.rows("gpus", "architectures")
    row = next((row for row in rows if row["cc"] == capability), None)
    if row is None:
        near = sorted({f"cc={row['cc']}" for row in rows}, key=lambda name: distance(name, capability))
        return UnknownGpu(text, f"The compute capability {capability} is not in compat/gpus.yml.", tuple(near[:3]))
    urls = tuple(row["source"])
    return Gpu(f"a GPU of compute capability {capability}", capability, row["architecture"], urls, unlisted=True)


def distance(name: str, capability: str) -> tuple[int, int]:
    first, second = cc(name.removeprefix("cc=")), cc(capability)
    return abs(first[0] - second[0]), abs(first[1] - second[1])


def make(compat: Compat, text: str, matches: Sequence[Entry]) -> Gpu:
    own = {row["pci_id"]: row for row in compat.rows("gpus", "devices")}
    matches = [entry for entry in matches if entry.row["pci_id"] in own] or matches  # an H20 is no H20 NVL16
    first = matches[0]
    first_row = own.get(first.row["pci_id"])
    names = common_names(first_row) if first_row else list(first.names)
    name = next((name for name in names if set(words(name)) <= set(words(text))), names[0])
    read = tuple(source["source"] for source in compat.subjects["gpu_devices"]["read"])
    rows = [(entry.row, own.get(entry.row["pci_id"], {})) for entry in matches]
    devices = tuple(
        Device(
            row["pci_id"],
            row["names"][0],
            tuple(own_row.get("first_drivers", row.get("first_drivers", ()))),  # gpus.yml overrides the generated ones
            tuple(row.get("not_in", ())),
        )
        for row, own_row in rows
    )
    architecture_name = architecture(compat, first.row["cc"])["architecture"]
    arm = any(own_row.get("host") == "aarch64" for _, own_row in rows)
    manager = any("nvlink_subnet_manager" in own_row for _, own_row in rows)
    return Gpu(name, first.row["cc"], architecture_name, read, devices, arm=arm, subnet_manager=manager)


@lru_cache(maxsize=256)
def architecture(compat: Compat, capability: str) -> Row:
    """The row of the architecture with this compute capability."""
    return next(row for row in compat.rows("gpus", "architectures") if row["cc"] == capability)


@dataclass(frozen=True)
class DriverLimits:
    """Requirements of a host's GPUs on a driver: branches ("" for any), the first driver that supports all, the open module,
    and the architectures among them that have no other one."""

    branch_min: str
    branch_max: str
    first_driver: str
    open_supported: bool
    only_open: tuple[str, ...]


def driver_limits(compat: Compat, names: Sequence[str]) -> DriverLimits:
    """The limits of all these GPUs together; an unknown GPU sets none."""
    models = [model for model in (find_gpu(compat, name) for name in names) if isinstance(model, Gpu)]
    rows = [architecture(compat, model.cc) for model in models]
    oldest = [row["first_driver_branch"] for row in rows if row["first_driver_branch"]]
    newest = [row["last_driver_branch"] for row in rows if row["last_driver_branch"]]
    firsts = [model.least_driver for model in models if model.least_driver]
    only_open = {row["architecture"] for row in compat.rows("drivers", "architectures_without_proprietary_module")}
    return DriverLimits(
        branch_min=max(oldest, key=int, default=""),
        branch_max=min(newest, key=int, default=""),
        first_driver=max(firsts, key=version, default=""),
        open_supported=all(row["open_kernel_module"] for row in rows),
        only_open=tuple(sorted({row["architecture"] for row in rows} & only_open)),
    )
