"""Python packages beside TensorFlow: Keras, and tensorflow-io with what it brings (HDFS, Kafka)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache

from hadoop_dl.data.compat import Row
from hadoop_dl.resolver.findings import Finding, sources, warning
from hadoop_dl.resolver.parts import Choice, Part
from hadoop_dl.resolver.request import Item
from hadoop_dl.resolver.universe import Core, Universe, python_of
from hadoop_dl.resolver.versions import listed, ranges, spans, version

NAMES = {"hdfs": "HDFS", "kafka": "Kafka"}


@lru_cache(maxsize=4096)
def python_fits(wanted: str | None, python: str) -> bool:
    return not wanted or ranges(wanted).contains(python)


class Keras(Part):
    """Multi-backend Keras up to TensorFlow 2.4, none for 2.5, the package that TensorFlow requires from 2.6 on."""

    level = "keras"

    def __init__(self, universe: Universe) -> None:
        self.universe = universe
        rows = universe.compat.rows("keras", "releases")
        self.releases = sorted(rows, key=lambda row: version(row["version"]), reverse=True)
        self.known: dict[Hashable, list[Row]] = {}

    def classify(self, core: Core) -> Hashable:
        return core.name, core.python

    def fitting(self, core: Core) -> list[Row]:
        """The releases for a line and a Python, the best first."""
        key = self.classify(core)
        if key not in self.known:
            self.known[key] = self.package(core) if core.line["keras"].get("package") else self.standalone(core)
        return self.known[key]

    def package(self, core: Core) -> list[Row]:
        keras = core.line["keras"]
        wanted = f"{keras['range']},{core.line['extra_pins'].get('keras', '')}".rstrip(",")
        return [
            row
            for row in self.releases
            if ranges(wanted).contains(row["version"]) and python_fits(row["requires_python"], core.python)
        ]

    def standalone(self, core: Core) -> list[Row]:
        """The matching release first, then others between those that match the neighbouring lines."""
        around = [row["keras"].get("standalone") for row in self.universe.neighbours(core.name)]
        near = [version(text) for text in around if text]
        if not near:
            return []
        rows = [row for row in self.releases if min(near) <= version(row["version"]) <= max(near)]
        own = core.line["keras"].get("standalone")
        return sorted(rows, key=lambda row: row["version"] != own)

    def candidates(self, core: Core) -> list[Row | None]:
        """What may be installed, the best first; None is no Keras: a line that requires the package cannot do without."""
        keras = core.line["keras"]
        if keras.get("package"):
            return list(self.fitting(core))
        return [*self.fitting(core), None] if keras.get("standalone") else [None, *self.fitting(core)]

    def best(self, core: Core, items: Sequence[Item]) -> Choice | None:
        found = self.find(core, items)
        return (self.choice(core, found[0]) if found[0] else Choice()) if found else None

    def possible(self, core: Core, items: Sequence[Item]) -> bool:
        return bool(self.find(core, items))

    def find(self, core: Core, items: Sequence[Item]) -> list[Row | None]:
        """The release of Keras, or None for no Keras, as a list of one; an empty list where the items leave nothing."""
        for row in self.candidates(core):
            if all(item.accepts(row["version"] if row else None) for item in items):
                return [row]
        return []

    def choice(self, core: Core, row: Row) -> Choice:
        keras, text = core.line["keras"], row["version"]
        if keras.get("package"):
            said = f"TensorFlow {core.name} requires {keras['range']}"
            return Choice({"keras": text}, [Finding(f"keras {text}: {said}", sources(core.line, row))])
        said = f"the multi-backend Keras of TensorFlow {core.name}'s time"
        choice = Choice({"keras": text}, [Finding(f"keras {text}: {said}", sources(row, core.line))])
        own = keras.get("standalone")
        if text != own or not keras["standalone_verified"]:
            matching = f"; {own} is the matching one" if own and own != text else ""
            told = f"Keras {text} with TensorFlow {core.name} was not seen to run{matching}"
            choice.warnings.append(warning(told, sources(core.line)))
        return choice

    def facts(self, core: Core, items: Sequence[Item]) -> Iterator[Finding]:
        there = self.candidates(core)
        order = [row["version"] for row in reversed(self.releases)]
        goes = spans((row["version"] for row in there if row), order) or "no Keras of its own package"
        also = " or without it" if goes and None in there and len(there) > 1 else ""
        yield Finding(
            f"TensorFlow {core.name} on Python {core.python} goes with Keras {goes}{also}", sources(core.line)
        )
        legacy = core.line["keras"].get("legacy_package")
        old = [row["version"] for row in self.releases if version(row["version"]).major < 3]
        if legacy and any(item.accepts(text) for item in items for text in old):
            said = f"Keras 2 for it is the package {legacy} {core.line['keras']['legacy_range']}"
            yield Finding(said, sources(core.line))
        for item in items:
            yield Finding(f"{item.label} was requested", ())


class Features(Part):
    """Whether HDFS and Kafka can be read, by what TensorFlow has inside or by tensorflow-io."""

    level = "features"

    def __init__(self, universe: Universe) -> None:
        self.universe = universe
        self.releases = universe.compat.rows("tensorflow_io", "releases")
        self.beyond = {  # loaded on a line that its requirement does not name
            row["tensorflow"].rpartition(".")[0]: row
            for row in universe.compat.rows("tensorflow_io", "observed")
            if row["result"] == "ok"
        }
        self.known: dict[Hashable, list[Row]] = {}
        self.built = {row["feature"]: row for row in universe.compat.rows("tensorflow_build", "from_source")}

    def classify(self, core: Core) -> Hashable:
        return core.name, core.source, core.python, core.package

    def inside(self, core: Core, feature: str) -> bool:
        if not core.built:
            return bool(core.line[feature]["prebuilt"])
        row = self.built[feature]
        return version(row["first"]) <= version(core.name) <= version(row["last"])

    def io(self, core: Core) -> list[Row]:
        """The releases of tensorflow-io for a line, a Python and a package, newest first."""
        key = (core.name, core.python, core.package)
        if key not in self.known:
            self.known[key] = self._io(core)
        return self.known[key]

    def _io(self, core: Core) -> list[Row]:
        found = []
        for row in self.releases:
            beyond = self.beyond.get(core.name)
            made = row["tensorflow"] == core.name or (beyond is not None and beyond["tensorflow_io"] == row["version"])
            there = row["on_pypi_linux"] and core.python in map(python_of, row["abis"])
            # Up to 0.22 it requires the distribution that is called tensorflow, so pip would install both.
            named = row["declared_as"] == "extra" or core.package == "tensorflow" if there else False
            if made and named and python_fits(row["requires_python"], core.python):
                found.append(row)
        return sorted(found, key=lambda row: version(row["version"]), reverse=True)

    def candidates(self, core: Core, items: Sequence[Item]) -> list[Row | None]:
        asked_not = {item.key for item in items if item.text == "false"}
        useful = [name for name in ("hdfs", "kafka") if not self.inside(core, name) and name not in asked_not]
        there: list[Row | None] = list(self.io(core))
        return [*there, None] if useful else [None, *there]

    def lack(self, core: Core, row: Row | None, feature: str) -> Finding | None:
        """Why a feature is missing with this release of tensorflow-io, or without any; None where it is not."""
        if self.inside(core, feature):
            return None
        if row is None:
            kind = "built from source" if core.built else "as a wheel"
            return Finding(f"TensorFlow {core.name} {kind} has no {NAMES[feature]} inside", sources(core.line))
        if row["hdfs_filesystem"] == "plugin" if feature == "hdfs" else row["kafka"]:
            return None
        return Finding(f"tensorflow-io {row['version']} does not read {NAMES[feature]}", sources(row))

    def best(self, core: Core, items: Sequence[Item]) -> Choice | None:
        off = {item.key for item in items if item.key in NAMES and not item.flag}
        found = self.find(core, items)
        return self.choice(core, found[0], off) if found else None

    def possible(self, core: Core, items: Sequence[Item]) -> bool:
        return bool(self.find(core, items))

    def find(self, core: Core, items: Sequence[Item]) -> list[Row | None]:
        """The release of tensorflow-io, or None for none, as a list of one; an empty list where the items leave nothing."""
        flags = {item.key for item in items if item.key in NAMES and item.flag}
        if any(item.key in flags and not item.flag for item in items):
            return []
        pins = [item for item in items if item.key == "tensorflow_io"]
        for row in self.candidates(core, items):
            if not all(item.accepts(row["version"] if row else None) for item in pins):
                continue
            if not any(self.lack(core, row, feature) for feature in flags):
                return [row]
        return []

    def choice(self, core: Core, row: Row | None, off: set[str]) -> Choice:
        choice = Choice()
        if row:
            choice.values["tensorflow_io"] = row["version"]
            choice.reasons.append(
                Finding(f"tensorflow_io {row['version']}: made for TensorFlow {row['tensorflow']}", sources(row))
            )
            if row["tensorflow"] != core.name:
                seen = self.beyond[core.name]
                choice.warnings.append(
                    Finding(
                        f"tensorflow-io {row['version']} is declared for TensorFlow {row['tensorflow']}; it was seen to load on {seen['tensorflow']}",
                        sources(seen),
                        False,
                    )
                )
            if core.built:
                choice.warnings.append(
                    Finding(
                        f"tensorflow-io {row['version']} is built against the official wheel: test it with yours",
                        sources(row),
                        False,
                    )
                )
        for feature, name in NAMES.items():
            there = feature not in off and not self.lack(core, row, feature)
            choice.values[feature] = there
            by = (
                "by TensorFlow itself"
                if self.inside(core, feature)
                else f"by tensorflow-io {row['version']}"
                if row
                else ""
            )
            said = (
                f"{name} is read {by}" if there else "not requested" if feature in off else f"nothing here reads {name}"
            )
            choice.reasons.append(Finding(f"{feature} {str(there).lower()}: {said}", sources(core.line)))
        return choice

    def facts(self, core: Core, items: Sequence[Item]) -> Iterator[Finding]:
        there = self.io(core)
        for feature in NAMES:
            if any(item.key == feature and item.flag for item in items):
                lacks = [self.lack(core, row, feature) for row in (None, *there)]
                yield from [finding for finding in lacks if finding][:2]
        versions = listed([row["version"] for row in there], "or") or "not published"
        yield Finding(
            f"tensorflow-io for {core.package} {core.name} on Python {core.python} is {versions}",
            sources(self.universe.compat.fact("tensorflow_io", "last release"), *there[:1]),
        )
        for item in items:
            yield Finding(f"{item.label} was requested", ())
