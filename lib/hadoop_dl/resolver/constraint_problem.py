"""A request as a constraint problem: which TensorFlow builds each item admits, and which builds all of them admit.

A set of builds is an integer with one bit for each. What one item admits is computed once; whether any subset of the
items can be met is then a few `and`s. So all minimal sets of items that clash are found, not only the first.
"""

from collections.abc import Hashable, Iterator, Sequence
from functools import cache
from itertools import combinations

from hadoop_dl.data.compat import Compat
from hadoop_dl.resolver.builds import BuildCatalog, TensorflowBuild
from hadoop_dl.resolver.findings import Finding
from hadoop_dl.resolver.gpus import UnknownGpu
from hadoop_dl.resolver.hosts import Unknown
from hadoop_dl.resolver.known_values import build_value
from hadoop_dl.resolver.parts import Choice, Part
from hadoop_dl.resolver.request import Item
from hadoop_dl.resolver.rules.all import all_parts
from hadoop_dl.resolver.rules.tensorflow import build_findings, cpu_features

Items = frozenset[int]
LARGEST_CLASH = 4  # items, if the search tries sets by size
MAX_SUBSETS = 4000  # of the items: after so many the search for clashes tries sets by size instead


class SharedTables:
    """Data that all requests share: the builds, the parts, the classes of builds that a part treats alike, and earlier results."""

    def __init__(self, compat: Compat) -> None:
        self.catalog = BuildCatalog(compat)
        self.parts = all_parts(self.catalog)
        self.all_builds = (1 << len(self.catalog.builds)) - 1
        self.classes = [self.classes_of(part) for part in self.parts]
        self.build_masks: dict[Item, int] = {}
        # For a part and its items: the builds that were asked about, and those of them for which there is a choice.
        self.part_masks: dict[tuple[int, tuple[Item, ...]], tuple[int, int]] = {}

    def classes_of(self, part: Part) -> dict[Hashable, tuple[TensorflowBuild, int]]:
        """The first build and the set of all builds of each class."""
        members: dict[Hashable, list[TensorflowBuild]] = {}
        for build in self.catalog.builds:
            members.setdefault(part.classify(build), []).append(build)
        return {key: (builds[0], sum(1 << build.index for build in builds)) for key, builds in members.items()}


@cache
def shared_tables(compat: Compat) -> SharedTables:
    """The same tables for all requests to the same data."""
    return SharedTables(compat)


class ConstraintProblem:
    """The items of one request, and which builds each subset of them admits."""

    def __init__(self, tables: SharedTables, items: Sequence[Item]) -> None:
        self.tables = tables
        self.catalog = tables.catalog
        self.items = list(items)
        self.all: Items = frozenset(range(len(self.items)))
        self.own = [
            frozenset(number for number, item in enumerate(self.items) if part.level in item.levels)
            for part in tables.parts
        ]
        self.build_masks = [self.build_mask(item) for item in self.items]
        self.masks: dict[Items, int] = {}

    # --- what each item leaves ---------------------------------------------------------------------------------------

    def build_mask(self, item: Item) -> int:
        """The builds that an item admits by itself."""
        if isinstance(item.subject, (Unknown, UnknownGpu)):
            return 0
        if "tensorflow" not in item.levels:
            return self.tables.all_builds
        masks = self.tables.build_masks
        if item not in masks:
            masks[item] = sum(1 << build.index for build in self.catalog.builds if self.admits(item, build))
        return masks[item]

    def admits(self, item: Item, build: TensorflowBuild) -> bool:
        if item.specs:
            return item.accepts(build_value(build, item.key, self.catalog))
        if item.key == "cpu_features":
            return set(cpu_features(self.catalog, build)[0]) <= set(item.text.split(","))
        return self.refusal(item, build) is None

    def refusal(self, item: Item, build: TensorflowBuild) -> Finding | None:
        """The first reason why an operating system, a GPU or a host refuses a build."""
        return next((finding for finding in build_findings(self.catalog, item, build) if finding.refuses), None)

    def part_mask(self, place: int, numbers: Items, within: int) -> int:
        """The builds within a set for which a part has a choice that meets all of its chosen items."""
        own = numbers & self.own[place]
        if not own:
            return within
        part, items = self.tables.parts[place], tuple(self.items[number] for number in sorted(own))
        tested_mask, fits = self.tables.part_masks.get((place, items), (0, 0))
        while untested_mask := within & ~tested_mask:
            build = next(self.builds(untested_mask))
            members = self.tables.classes[place][part.classify(build)][1]
            tested_mask |= members
            if part.best(build, items) is not None:
                fits |= members
        self.tables.part_masks[place, items] = tested_mask, fits
        return within & fits

    def choice(self, place: int, build: TensorflowBuild, own: Items) -> Choice | None:
        return self.tables.parts[place].best(build, [self.items[number] for number in sorted(own)])

    def mask(self, numbers: Items) -> int:
        """The builds that can be completed to a stack that meets all chosen items."""
        if numbers not in self.masks:
            mask = self.tables.all_builds
            for number in numbers:
                mask &= self.build_masks[number]
            for place in range(len(self.tables.parts)):
                if mask:
                    mask &= self.part_mask(place, numbers, mask)
            self.masks[numbers] = mask
        return self.masks[numbers]

    @property
    def solutions(self) -> int:
        """The builds that can be completed to a stack that meets all items."""
        return self.mask(self.all)

    def builds(self, mask: int) -> Iterator[TensorflowBuild]:
        """The builds of a set, in order of preference."""
        while mask:
            low = mask & -mask
            yield self.catalog.builds[low.bit_length() - 1]
            mask ^= low

    # --- clashes and ways out ----------------------------------------------------------------------------------------

    def clashes(self) -> list[Items]:
        """All minimal sets of items that cannot be met together.

        A tree: a clash is found, and each of its items is removed in turn, until the rest can be met. Every clash is a
        label of it, because a path that removes only items of other clashes must end at it.
        """
        clashes: list[Items] = []
        visited_sets: set[Items] = set()
        queue: list[Items] = [frozenset()]
        while queue and len(visited_sets) < MAX_SUBSETS:
            removed_items = queue.pop()
            if removed_items in visited_sets:
                continue
            visited_sets.add(removed_items)
            clash = next((clash for clash in clashes if not clash & removed_items), None)
            if clash is None:
                if self.mask(self.all - removed_items):
                    continue
                clash = self.shrink(self.all - removed_items)
                clashes.append(clash)
            queue += [removed_items | {number} for number in clash]
        return sorted(clashes if not queue else self.by_size(), key=lambda clash: (len(clash), sorted(clash)))

    def by_size(self) -> list[Items]:
        """The clashes of a few items, by trying all small subsets: for requests with very many clashes."""
        clashes: list[Items] = []
        numbers = sorted(self.all)
        for size in range(1, min(LARGEST_CLASH, len(numbers)) + 1):
            for group in combinations(numbers, size):
                subset = frozenset(group)
                if not any(clash <= subset for clash in clashes) and not self.mask(subset):
                    clashes.append(subset)
        if not clashes:
            clashes.append(self.shrink(self.all))
        return clashes

    def shrink(self, numbers: Items) -> Items:
        """A minimal clash inside a set of items that cannot be met."""
        for number in sorted(numbers):
            if not self.mask(numbers - {number}):
                numbers = numbers - {number}
        return numbers

    def findings(self, build: TensorflowBuild) -> list[Finding]:
        """The findings of the environment items about a build."""
        return [
            finding
            for item in self.items
            if item.key in ("os", "gpu", "host")
            for finding in build_findings(self.catalog, item, build)
        ]
