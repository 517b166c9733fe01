"""A request against the data, as sets: which TensorFlows each item leaves, and what is left of all of them.

A set of cores is an integer with one bit for each. What one item leaves is worked out once; whether any choice of items
can be met together is then a few `and`s. So every smallest set of items that clash can be found, not only the first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cache
from itertools import combinations

from hadoop_dl.compat import Compat
from hadoop_dl.resolver.core_rules import core_findings, cpu_features
from hadoop_dl.resolver.drivers import least_driver
from hadoop_dl.resolver.findings import Finding
from hadoop_dl.resolver.gpus import UnknownGpu
from hadoop_dl.resolver.hosts import Unknown
from hadoop_dl.resolver.parts import Choice, Part, all_parts
from hadoop_dl.resolver.request import Item
from hadoop_dl.resolver.universe import Core, Universe

Items = frozenset[int]
Identity = tuple[str, str, str, Hashable]


def identity(item: Item) -> Identity:
    """What makes an item the same as one of another request."""
    return item.key, item.text, item.only, item.thing


class Engine:
    """What does not depend on a request: the cores, the parts, and the classes of cores that each part tells apart."""

    def __init__(self, compat: Compat) -> None:
        self.universe = Universe(compat)
        self.parts = all_parts(self.universe)
        self.everything = (1 << len(self.universe.cores)) - 1
        self.classes: list[dict[Hashable, tuple[Core, int]]] = []
        for part in self.parts:
            found: dict[Hashable, tuple[Core, int]] = {}
            for core in self.universe.cores:
                key = part.classify(core)
                first, mask = found.get(key, (core, 0))
                found[key] = (first, mask | 1 << core.index)
            self.classes.append(found)
        self.core_masks: dict[Identity, int] = {}
        self.choices: dict[tuple[int, Hashable, tuple[Identity, ...]], Choice | None] = {}


@cache
def _engine(digest: str) -> list[Engine]:
    del digest
    return []


def engine(compat: Compat) -> Engine:
    """One engine for each state of the data."""
    kept = _engine(compat.digest)
    if not kept:
        kept.append(Engine(compat))
    return kept[0]


def core_value(core: Core, key: str, universe: Universe) -> str | None:
    """A core's own value of a component."""
    if key == "tensorflow":
        return core.version
    if key == "tensorflow_package":
        return core.package
    if key == "tensorflow_source":
        return core.source
    if key == "python":
        return core.python
    if key == "cuda":
        return core.cuda
    if key == "nccl":
        return core.nccl
    if key == "glibc_min":
        return core.glibc_min
    return least_driver(universe.toolkits[core.cuda]) if core.cuda else None


class Problem:
    """One request's items, with everything that was found out about them."""

    def __init__(self, engine: Engine, items: Sequence[Item]) -> None:
        self.engine = engine
        self.universe = engine.universe
        self.items = list(items)
        self.all: Items = frozenset(range(len(self.items)))

    # --- what each item leaves ---------------------------------------------------------------------------------------

    def core_mask(self, number: int) -> int:
        """The cores that an item itself leaves."""
        item = self.items[number]
        if isinstance(item.thing, (Unknown, UnknownGpu)):
            return 0
        if "core" not in item.levels:
            return self.engine.everything
        key = identity(item)
        masks = self.engine.core_masks
        if key not in masks:
            if len(masks) > 4096:
                masks.clear()
            masks[key] = sum(1 << core.index for core in self.universe.cores if self.core_accepts(item, core))
        return masks[key]

    def core_accepts(self, item: Item, core: Core) -> bool:
        if item.key in ("os", "gpu", "host"):
            return not any(finding.refuses for finding in core_findings(self.universe, item, core))
        if item.key == "cpu_features":
            return set(cpu_features(self.universe, core)[0]) <= set(item.text.replace("none", "").split(","))
        return item.accepts(core_value(core, item.key, self.universe))

    def of_part(self, part: Part, chosen: Items) -> Items:
        return frozenset(number for number in chosen if part.level in self.items[number].levels)

    def part_mask(self, place: int, chosen: Items, within: int) -> int:
        """Those of the cores within a set for which a part has a choice that meets its items among the chosen ones."""
        own = self.of_part(self.engine.parts[place], chosen)
        if not own:
            return within
        mask = 0
        for key, (core, members) in self.engine.classes[place].items():
            if members & within and self.choice(place, key, core, own) is not None:
                mask |= members & within
        return mask

    def choice(self, place: int, key: Hashable, core: Core, own: Items) -> Choice | None:
        items = [self.items[number] for number in sorted(own)]
        known = (place, key, tuple(identity(item) for item in items))
        kept = self.engine.choices
        if known not in kept:
            if len(kept) > 200_000:
                kept.clear()
            kept[known] = self.engine.parts[place].best(core, items)
        return kept[known]

    def mask(self, chosen: Items) -> int:
        """The cores that can be completed to a stack that meets all chosen items."""
        left = self.engine.everything
        for number in chosen:
            left &= self.core_mask(number)
        for place in range(len(self.engine.parts)):
            if not left:
                return 0
            left &= self.part_mask(place, chosen, left)
        return left

    def cores(self, mask: int) -> Iterator[Core]:
        """The cores of a set, in order of preference."""
        while mask:
            low = mask & -mask
            yield self.universe.cores[low.bit_length() - 1]
            mask ^= low

    # --- clashes and ways out ----------------------------------------------------------------------------------------

    def clashes(self, largest: int = 4) -> list[Items]:
        """Every smallest set of items that cannot be met together."""
        found: list[Items] = []
        numbers = sorted(self.all)
        for size in range(1, min(largest, len(numbers)) + 1):
            for group in combinations(numbers, size):
                chosen = frozenset(group)
                if not any(clash <= chosen for clash in found) and not self.mask(chosen):
                    found.append(chosen)
        if not found:
            found.append(self.shrink(self.all))
        return found

    def shrink(self, chosen: Items) -> Items:
        """One smallest clash inside a set of items that cannot be met."""
        for number in sorted(chosen):
            if not self.mask(chosen - {number}):
                chosen = chosen - {number}
        return chosen

    def findings(self, core: Core) -> list[Finding]:
        """What the environment items have to say about a core."""
        return [
            finding
            for item in self.items
            if item.key in ("os", "gpu", "host")
            for finding in core_findings(self.universe, item, core)
        ]
