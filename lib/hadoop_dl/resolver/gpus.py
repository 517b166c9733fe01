"""GPUs by the names that people use: P100, `Tesla P100-PCIE-16GB` as nvidia-smi prints it, or a PCI id."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import lru_cache

from hadoop_dl.compat import Compat, Row
from hadoop_dl.resolver.versions import cc

# A Quadro or a GeForce is another card than the one without that word.
NOISE = {"nvidia", "tesla", "gpu", "corporation", "graphics", "card", "ac", "rev", "a1"}
OTHERS = {"amd", "radeon", "instinct", "intel", "matrox", "aspeed"}


@dataclass(frozen=True)
class Gpu:
    """One model: the name to say, its compute capability and architecture, and where both are written."""

    name: str
    cc: str
    architecture: str
    sources: tuple[str, ...]
    verified: bool = True

    @property
    def capability(self) -> tuple[int, int]:
        return cc(self.cc)


@dataclass(frozen=True)
class UnknownGpu:
    """A text that names no known model; `why` is a sentence, `near` the names to try."""

    name: str
    why: str
    near: tuple[str, ...]


def words(text: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9]+", text.lower()) if word and word not in NOISE]


def common_names(row: Row) -> list[str]:
    """What people call a device: `P100` for `Tesla P100 PCIe 16GB`, both for `A2 / A16`; the whole name for a workstation card."""
    name = re.sub(r"^Tesla ", "", str(row["name"]))
    if not re.match(r"[A-Z]+\d", name):
        return [name]
    firsts = [part.split(" ")[0] for part in name.split(" / ")]
    return [first for first in firsts if first[0].isalpha()]


def names(compat: Compat) -> list[str]:
    """The common names of all known models, newest architecture first."""
    rows = sorted(compat.rows("gpus", "devices"), key=lambda row: cc(row["cc"]), reverse=True)
    return list(dict.fromkeys(name for row in rows for name in common_names(row)))


def fits(wanted: list[str], row: Row) -> bool:
    """Whether every word is one of the device's; the generation of SXM need not be said.

    The name of a workstation card has to be whole up to its number: an RTX 6000 is no RTX PRO 6000.
    """
    there = words(row["name"])
    number = next((place for place, word in enumerate(there) if re.search(r"\d", word)), 0)
    return set(there[: number + 1 if number else 0]) <= set(wanted) and all(
        word in there or (word == "sxm" and any(part.startswith("sxm") for part in there)) for word in wanted
    )


def find_gpu(compat: Compat, given: str) -> Gpu | UnknownGpu:
    """The model that a text names."""
    return _find(compat, given.strip())


@lru_cache(maxsize=4096)
def _find(compat: Compat, given: str) -> Gpu | UnknownGpu:
    devices = compat.rows("gpus", "devices")
    pci = re.fullmatch(r"(?:pci:)?(?:(?:0x)?([0-9a-f]{4})[:/])?(?:0x)?([0-9a-f]{4})", given.lower())
    if pci:
        found = [row for row in devices if row["pci_id"] == f"10de:{pci[2]}"] if pci[1] in (None, "10de") else []
        if found:
            return gpu(given, found)
        if pci[1] not in (None, "10de"):
            return UnknownGpu(
                given, f"The PCI device {given} is not NVIDIA's (vendor 10de), and only those run CUDA.", ()
            )
        if pci[1] or not words(given) or not any(set(words(given)) & set(words(row["name"])) for row in devices):
            ids = sorted((row["pci_id"] for row in devices), key=lambda text: abs(int(text[5:], 16) - int(pci[2], 16)))
            return UnknownGpu(given, f"The PCI id {given} is of no GPU that is known here.", tuple(sorted(ids[:3])))
    if OTHERS & set(words(given)):
        return UnknownGpu(given, f"{given} is not NVIDIA's, and only those run CUDA.", ())
    shown = re.search(r"\[(.+)\]", given)  # lspci: NVIDIA Corporation GP100GL [Tesla P100 PCIe 16GB] (rev a1)
    wanted = words(shown[1] if shown else given)
    found = [row for row in devices if wanted and fits(wanted, row)]
    if found and len({row["cc"] for row in found}) == 1:
        return gpu(given, found)
    if found:
        near = tuple(dict.fromkeys(name for row in found for name in common_names(row)))[:6]
        return UnknownGpu(given, f"The name {given} may mean any of several GPUs.", near)
    known = names(compat)
    lower = {name.lower(): name for name in known}
    tries = ["".join(wanted), *wanted]
    near = tuple(
        dict.fromkeys(
            lower[match] for word in tries for match in difflib.get_close_matches(word, lower, n=3, cutoff=0.45)
        )
    )[:3] or tuple(lower[match] for match in difflib.get_close_matches("".join(wanted), lower, n=3, cutoff=0.0))
    return UnknownGpu(given, f"No GPU called {given} is known here.", near)


def gpu(given: str, rows: list[Row]) -> Gpu:
    row = rows[0]
    sources = tuple(dict.fromkeys(source for found in rows[:1] for source in found["source"]))
    called = common_names(row)
    name = next((name for name in called if set(words(name)) <= set(words(given))), called[0])
    return Gpu(name, row["cc"], row["architecture"], sources, all(found["verified"] for found in rows))


def architecture(compat: Compat, model: Gpu) -> Row:
    """The row of the model's architecture."""
    return next(row for row in compat.rows("gpus", "architectures") if row["cc"] == model.cc)
