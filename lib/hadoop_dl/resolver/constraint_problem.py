"""A request as a constraint problem: which TensorFlow builds each item admits, and which builds all of them admit.

A set of builds is an integer with one bit for each. What one item admits is computed once; whether any subset of the
items can be met is then a few `and`s. So all minimal sets of items that clash are found, not only the first.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cache
from itertools import combinations
from operator import attrgetter

from hadoop_dl.data.compat import Compat
from hadoop_dl.resolver.builds import BuildCatalog, TensorflowBuild
from hadoop_dl.resolver.findings import Finding
from hadoop_dl.resolver.gpus import UnknownGpu
from hadoop_dl.resolver.hosts import Unknown
from hadoop_dl.resolver.known_values import build_value
from hadoop_dl.resolver.parts import Choice
from hadoop_dl.resolver.request import Item
from hadoop_dl.resolver.rules.all import all_parts
from hadoop_dl.resolver.rules.tensorflow import build_findings, cpu_features, rules

Items = frozenset[int]
LARGEST_CLASH = 4  # items, if the search tries sets by size
MAX_SUBSETS = 4000  # of the items: after so many the search for clashes tries sets by size instead
Identity = tuple[str, str, str, Hashable]


def identity(item: Item) -> Identity:
    """The key under which results about an item are shared between requests."""
    return item.key, item.text, item.host_fact, item.subject


class SharedTables:
    """Data that all requests share: the builds, the parts, the classes of builds that a part treats alike, and earlier results."""

    def __init__(self, compat: Compat) -> None:
        self.catalog = BuildCatalog(compat)
        self.parts = all_parts(self.catalog)
        self.all_builds = (1 << len(self.catalog.builds)) - 1
        self.classes: list[dict[Hashable, tuple[TensorflowBuild, int]]] = []
        self.class_keys: list[list[Hashable]] = []  # for a part and a build: the build's class
        for part in self.parts:
            keys = [part.classify(build) for build in self.catalog.builds]
            self.class_keys.append(keys)
            self.classes.append(self.grouped(keys))
        self.groups: dict[tuple[str, ...], list[tuple[TensorflowBuild, int]]] = {}
        self.build_masks: dict[Identity, int] = {}
        self.value_masks: dict[str, dict[str | None, int]] = {}
        self.refusals: dict[tuple[Identity, int], Finding | None] = {}
        self.choices: dict[tuple[int, Hashable, tuple[Identity, ...]], Choice | None] = {}
        # For a part and its items: the builds that were asked about, and those of them for which there is a choice.
        self.part_masks: dict[tuple[int, tuple[Identity, ...]], tuple[int, int]] = {}

    def alike(self, fields: tuple[str, ...]) -> list[tuple[TensorflowBuild, int]]:
        """The builds by what they have in these fields: the first of each group, and all of it."""
        if fields not in self.groups:
            self.groups[fields] = list(self.grouped(map(attrgetter(*fields), self.catalog.builds)).values())
        return self.groups[fields]

    def grouped(self, keys: Iterable[Hashable]) -> dict[Hashable, tuple[TensorflowBuild, int]]:
        """The first build and the set of all builds for each key; there is one key for each build, in their order."""
        members: dict[Hashable, list[int]] = {}
        for index, key in enumerate(keys):
            members.setdefault(key, []).append(index)
        return {
            key: (self.catalog.builds[indexes[0]], sum(1 << index for index in indexes))
            for key, indexes in members.items()
        }


@cache
def shared_tables(compat: Compat) -> SharedTables:
    """The same tables for all requests to the same data; a Compat is hashed by its digest."""
    return SharedTables(compat)


class ConstraintProblem:
    """The items of one request, and which builds each subset of them admits."""

    def __init__(self, tables: SharedTables, items: Sequence[Item]) -> None:
        self.tables = tables
        self.catalog = tables.catalog
        self.items = list(items)
        self.all: Items = frozenset(range(len(self.items)))
        self.identities = [identity(item) for item in self.items]
        self.own = [
            frozenset(number for number, item in enumerate(self.items) if part.level in item.levels)
            for part in tables.parts
        ]
        self.build_masks = [self.build_mask(number) for number in range(len(self.items))]
        self.masks: dict[Items, int] = {}

    # --- what each item leaves ---------------------------------------------------------------------------------------

    def build_mask(self, number: int) -> int:
        """The builds that an item admits by itself."""
        item = self.items[number]
        if isinstance(item.subject, (Unknown, UnknownGpu)):
            return 0
        if "tensorflow" not in item.levels:
            return self.tables.all_builds
        key = self.identities[number]
        masks = self.tables.build_masks
        if key not in masks:
            if len(masks) > 4096:
                masks.clear()
            masks[key] = self.build_mask_of_values(item) if item.specs else self.build_mask_of_rules(number)
        return masks[key]

    def build_mask_of_values(self, item: Item) -> int:
        """A version is compared once, not once for every build that has it."""
        value_masks = self.tables.value_masks
        if item.key not in value_masks:
            build_values = [build_value(build, item.key, self.catalog) for build in self.catalog.builds]
            masks = self.tables.grouped(build_values)
            value_masks[item.key] = {value: masks[value][1] for value in dict.fromkeys(build_values)}
        return sum(mask for value, mask in value_masks[item.key].items() if item.accepts(value))

    def build_mask_of_rules(self, number: int) -> int:
        """A rule is evaluated once for each group of builds that are equal in the fields that it reads."""
        item, mask = self.items[number], self.tables.all_builds
        if item.key == "cpu_features":
            features = set(item.text.replace("none", "").split(","))
            for build, members in self.tables.alike(("name", "source")):
                if not set(cpu_features(self.catalog, build)[0]) <= features:
                    mask &= ~members
        for rule, fields in rules(self.catalog, item):
            for build, members in self.tables.alike(fields):
                if members & mask and any(finding.refuses for finding in rule(build)):
                    mask &= ~members
        return mask

    def refusal(self, number: int, build: TensorflowBuild) -> Finding | None:
        """The first reason why an operating system, a GPU or a host refuses a build."""
        refusals, key = self.tables.refusals, (self.identities[number], build.index)
        if key not in refusals:
            if len(refusals) > 500_000:
                refusals.clear()
            findings = build_findings(self.catalog, self.items[number], build)
            refusals[key] = next((finding for finding in findings if finding.refuses), None)
        return refusals[key]

    def part_mask(self, place: int, numbers: Items, within: int) -> int:
        """The builds within a set for which a part has a choice that meets all of its chosen items."""
        own = numbers & self.own[place]
        if not own:
            return within
        cache_key = (place, tuple(self.identities[number] for number in sorted(own)))
        part_masks = self.tables.part_masks
        tested_mask, fits = part_masks.get(cache_key, (0, 0))
        untested_mask = within & ~tested_mask
        if untested_mask:
            part, items = self.tables.parts[place], [self.items[number] for number in sorted(own)]
            while untested_mask:
                key = self.tables.class_keys[place][(untested_mask & -untested_mask).bit_length() - 1]
                build, members = self.tables.classes[place][key]
                untested_mask &= ~members
                tested_mask |= members
                if part.possible(build, items):
                    fits |= members
            if len(part_masks) > 20_000:
                part_masks.clear()
            part_masks[cache_key] = tested_mask, fits
        return within & fits

    def choice(self, place: int, key: Hashable, build: TensorflowBuild, own: Items) -> Choice | None:
        items = [self.items[number] for number in sorted(own)]
        cache_key = (place, key, tuple(self.identities[number] for number in sorted(own)))
        choices = self.tables.choices
        if cache_key not in choices:
            if len(choices) > 200_000:
                choices.clear()
            choices[cache_key] = self.tables.parts[place].best(build, items)
        return choices[cache_key]

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
