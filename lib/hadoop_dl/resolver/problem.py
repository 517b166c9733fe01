"""A request against the data, as sets: which TensorFlows each item leaves, and what is left of all of them.

A set of cores is an integer with one bit for each. What one item leaves is worked out once; whether any choice of items
can be met together is then a few `and`s. So every smallest set of items that clash can be found, not only the first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cache
from itertools import combinations
from operator import attrgetter

from hadoop_dl.data.compat import Compat
from hadoop_dl.resolver import site
from hadoop_dl.resolver.findings import Finding
from hadoop_dl.resolver.gpus import UnknownGpu
from hadoop_dl.resolver.hosts import Unknown
from hadoop_dl.resolver.known_values import core_value
from hadoop_dl.resolver.parts import Choice, Part
from hadoop_dl.resolver.request import Item
from hadoop_dl.resolver.rules import drivers, jvm, python_parts, toolkits
from hadoop_dl.resolver.rules.tensorflow import core_findings, cpu_features, rules
from hadoop_dl.resolver.universe import Core, Universe

Items = frozenset[int]
PATIENCE = 4000  # sets of items that are looked at before the search for clashes goes by size instead
Identity = tuple[str, str, str, Hashable]


def all_parts(universe: Universe) -> list[Part]:
    return [
        toolkits.Cudnn(universe),
        drivers.Driver(universe),
        toolkits.Build(universe),
        python_parts.Keras(universe),
        python_parts.Features(universe),
        jvm.Jvm(universe),
        site.Site(universe),
    ]


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
        self.class_keys: list[list[Hashable]] = []  # for a part and a core: the core's class
        for part in self.parts:
            keys = [part.classify(core) for core in self.universe.cores]
            self.class_keys.append(keys)
            self.classes.append(self.grouped(keys))
        self.groups: dict[tuple[str, ...], list[tuple[Core, int]]] = {}
        self.core_masks: dict[Identity, int] = {}
        self.value_masks: dict[str, dict[str | None, int]] = {}
        self.refusals: dict[tuple[Identity, int], Finding | None] = {}
        self.choices: dict[tuple[int, Hashable, tuple[Identity, ...]], Choice | None] = {}
        # For a part and its items: the cores that were asked about, and those of them for which there is a choice.
        self.part_masks: dict[tuple[int, tuple[Identity, ...]], tuple[int, int]] = {}

    def alike(self, fields: tuple[str, ...]) -> list[tuple[Core, int]]:
        """The cores by what they have in these fields: the first of each group, and all of it."""
        if fields not in self.groups:
            self.groups[fields] = list(self.grouped(map(attrgetter(*fields), self.universe.cores)).values())
        return self.groups[fields]

    def grouped(self, keys: Iterable[Hashable]) -> dict[Hashable, tuple[Core, int]]:
        """The first core and the set of all cores for each key; there is one key for each core, in their order."""
        members: dict[Hashable, list[int]] = {}
        for index, key in enumerate(keys):
            members.setdefault(key, []).append(index)
        return {
            key: (self.universe.cores[indexes[0]], sum(1 << index for index in indexes))
            for key, indexes in members.items()
        }


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


class Problem:
    """One request's items, with everything that was found out about them."""

    def __init__(self, engine: Engine, items: Sequence[Item]) -> None:
        self.engine = engine
        self.universe = engine.universe
        self.items = list(items)
        self.all: Items = frozenset(range(len(self.items)))
        self.identities = [identity(item) for item in self.items]
        self.own = [
            frozenset(number for number, item in enumerate(self.items) if part.level in item.levels)
            for part in engine.parts
        ]
        self.core_masks = [self.find_core_mask(number) for number in range(len(self.items))]
        self.masks: dict[Items, int] = {}

    # --- what each item leaves ---------------------------------------------------------------------------------------

    def core_mask(self, number: int) -> int:
        """The cores that an item itself leaves."""
        return self.core_masks[number]

    def find_core_mask(self, number: int) -> int:
        item = self.items[number]
        if isinstance(item.thing, (Unknown, UnknownGpu)):
            return 0
        if "core" not in item.levels:
            return self.engine.everything
        key = self.identities[number]
        masks = self.engine.core_masks
        if key not in masks:
            if len(masks) > 4096:
                masks.clear()
            masks[key] = self.core_mask_of_values(item) if item.specs else self.core_mask_of_rules(number)
        return masks[key]

    def core_mask_of_values(self, item: Item) -> int:
        """A version is asked about once, not once for every core that has it."""
        kept = self.engine.value_masks
        if item.key not in kept:
            there = [core_value(core, item.key, self.universe) for core in self.universe.cores]
            masks = self.engine.grouped(there)
            kept[item.key] = {value: masks[value][1] for value in dict.fromkeys(there)}
        return sum(mask for value, mask in kept[item.key].items() if item.accepts(value))

    def core_mask_of_rules(self, number: int) -> int:
        """A rule is asked once for each group of cores that are alike in the fields that it looks at."""
        item, left = self.items[number], self.engine.everything
        if item.key == "cpu_features":
            there = set(item.text.replace("none", "").split(","))
            for core, members in self.engine.alike(("name", "source")):
                if not set(cpu_features(self.universe, core)[0]) <= there:
                    left &= ~members
        for rule, fields in rules(self.universe, item):
            for core, members in self.engine.alike(fields):
                if members & left and any(finding.refuses for finding in rule(core)):
                    left &= ~members
        return left

    def refusal(self, number: int, core: Core) -> Finding | None:
        """The first reason of an operating system, a GPU or a host against a core."""
        kept, key = self.engine.refusals, (self.identities[number], core.index)
        if key not in kept:
            if len(kept) > 500_000:
                kept.clear()
            found = core_findings(self.universe, self.items[number], core)
            kept[key] = next((finding for finding in found if finding.refuses), None)
        return kept[key]

    def of_part(self, part: Part, chosen: Items) -> Items:
        return frozenset(number for number in chosen if part.level in self.items[number].levels)

    def part_mask(self, place: int, chosen: Items, within: int) -> int:
        """Those of the cores within a set for which a part has a choice that meets its items among the chosen ones."""
        own = chosen & self.own[place]
        if not own:
            return within
        known = (place, tuple(self.identities[number] for number in sorted(own)))
        kept = self.engine.part_masks
        asked, fits = kept.get(known, (0, 0))
        left = within & ~asked
        if left:
            part, items = self.engine.parts[place], [self.items[number] for number in sorted(own)]
            while left:
                key = self.engine.class_keys[place][(left & -left).bit_length() - 1]
                core, members = self.engine.classes[place][key]
                left &= ~members
                asked |= members
                if part.possible(core, items):
                    fits |= members
            if len(kept) > 20_000:
                kept.clear()
            kept[known] = asked, fits
        return within & fits

    def choice(self, place: int, key: Hashable, core: Core, own: Items) -> Choice | None:
        items = [self.items[number] for number in sorted(own)]
        known = (place, key, tuple(self.identities[number] for number in sorted(own)))
        kept = self.engine.choices
        if known not in kept:
            if len(kept) > 200_000:
                kept.clear()
            kept[known] = self.engine.parts[place].best(core, items)
        return kept[known]

    def mask(self, chosen: Items) -> int:
        """The cores that can be completed to a stack that meets all chosen items."""
        if chosen not in self.masks:
            left = self.engine.everything
            for number in chosen:
                left &= self.core_masks[number]
            for place in range(len(self.engine.parts)):
                if left:
                    left &= self.part_mask(place, chosen, left)
            self.masks[chosen] = left
        return self.masks[chosen]

    def cores(self, mask: int) -> Iterator[Core]:
        """The cores of a set, in order of preference."""
        while mask:
            low = mask & -mask
            yield self.universe.cores[low.bit_length() - 1]
            mask ^= low

    # --- clashes and ways out ----------------------------------------------------------------------------------------

    def clashes(self) -> list[Items]:
        """Every smallest set of items that cannot be met together.

        A tree: a clash is found, and each of its items is removed in turn, until the rest can be met. Every clash is a
        label of it, because a path that removes only items of other clashes must end at it.
        """
        found: list[Items] = []
        seen: set[Items] = set()
        queue: list[Items] = [frozenset()]
        while queue and len(seen) < PATIENCE:
            gone = queue.pop()
            if gone in seen:
                continue
            seen.add(gone)
            clash = next((clash for clash in found if not clash & gone), None)
            if clash is None:
                if self.mask(self.all - gone):
                    continue
                clash = self.shrink(self.all - gone)
                found.append(clash)
            queue += [gone | {number} for number in clash]
        return sorted(found if not queue else self.by_size(), key=lambda clash: (len(clash), sorted(clash)))

    def by_size(self, largest: int = 4) -> list[Items]:
        """The clashes of a few items, by trying all sets of them: for requests that are wrong all over."""
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
        """What the environment items contribute about a core."""
        return [
            finding
            for item in self.items
            if item.key in ("os", "gpu", "host")
            for finding in core_findings(self.universe, item, core)
        ]
