"""GPUs by the names that people use: P100, `Tesla P100-PCIE-16GB` as nvidia-smi prints it, or a PCI id."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from hadoop_dl.compat import Compat, Row
from hadoop_dl.resolver.versions import cc

NOISE = {"nvidia", "tesla", "quadro", "geforce", "gpu", "corporation", "graphics", "card", "ac"}


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


def common_name(row: Row) -> str:
    """What people call a device: `P100` for `Tesla P100 PCIe 16GB`."""
    name = re.sub(r"^Tesla ", "", str(row["name"]))
    return name if name.startswith("RTX") else name.split(" ")[0]


def names(compat: Compat) -> list[str]:
    """The common names of all known models, newest architecture first."""
    rows = sorted(compat.rows("gpus", "devices"), key=lambda row: cc(row["cc"]), reverse=True)
    return list(dict.fromkeys(common_name(row) for row in rows))


def fits(wanted: Iterable[str], there: list[str]) -> bool:
    """Whether every word is one of the device's; the generation of SXM need not be said."""
    return all(word in there or (word == "sxm" and any(part.startswith("sxm") for part in there)) for word in wanted)


def find_gpu(compat: Compat, given: str) -> Gpu | UnknownGpu:
    """The model that a text names."""
    return _find(compat.digest, given.strip(), _Holder(compat))


class _Holder:
    """Carries the data past the memo's key: the digest stands for it."""

    def __init__(self, compat: Compat) -> None:
        self.compat = compat

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Holder)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=4096)
def _find(digest: str, given: str, holder: _Holder) -> Gpu | UnknownGpu:
    del digest
    compat = holder.compat
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
            close = difflib.get_close_matches(f"10de:{pci[2]}", [row["pci_id"] for row in devices], n=3, cutoff=0.7)
            return UnknownGpu(given, f"The PCI id {given} is of no GPU that is known here.", tuple(close))
    wanted = words(given)
    found = [row for row in devices if wanted and fits(wanted, words(row["name"]))]
    if found and len({row["cc"] for row in found}) == 1:
        return gpu(given, found)
    if found:
        near = tuple(dict.fromkeys(common_name(row) for row in found))[:6]
        return UnknownGpu(given, f"The name {given} may mean any of several GPUs.", near)
    known = names(compat)
    lower = {name.lower(): name for name in known}
    tries = [*wanted, "".join(wanted)]
    near = tuple(
        dict.fromkeys(
            lower[match] for word in tries for match in difflib.get_close_matches(word, lower, n=3, cutoff=0.45)
        )
    )[:3]
    return UnknownGpu(given, f"No GPU called {given} is known here.", near)


def gpu(given: str, rows: list[Row]) -> Gpu:
    row = rows[0]
    sources = tuple(dict.fromkeys(source for found in rows[:1] for source in found["source"]))
    return Gpu(common_name(row), row["cc"], row["architecture"], sources, all(found["verified"] for found in rows))


def architecture(compat: Compat, model: Gpu) -> Row:
    """The row of the model's architecture."""
    return next(row for row in compat.rows("gpus", "architectures") if row["cc"] == model.cc)
