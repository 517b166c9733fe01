"""Python packages beside TensorFlow: Keras, and tensorflow-io with its readers (HDFS, Kafka)."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from hadoop_dl.data.compat import Compat, Row
from hadoop_dl.resolver.builds import BuildCatalog, TensorflowBuild, python_of
from hadoop_dl.resolver.findings import Finding, sources, warning
from hadoop_dl.resolver.parts import Choice, Part
from hadoop_dl.resolver.request import Item
from hadoop_dl.resolver.versions import listed, ranges, spans, version

NAMES = {"hdfs": "HDFS", "kafka": "Kafka"}
NO_PYYAML = ("3.4", "3.5")
PYYAML = "https://pypi.org/project/PyYAML/5.3.1/#files"


@lru_cache(maxsize=4096)
def python_fits(requires_python: str | None, python: str) -> bool:
    return not requires_python or ranges(requires_python).contains(python)


class Keras(Part):
    """Multi-backend Keras up to TensorFlow 2.4, none for 2.5, the package that TensorFlow requires from 2.6 on."""

    level = "keras"

    def __init__(self, catalog: BuildCatalog) -> None:
        self.catalog = catalog
        rows = catalog.compat.rows("keras", "releases")
        self.releases = sorted(rows, key=lambda row: version(row["version"]), reverse=True)

    def classify(self, build: TensorflowBuild) -> Hashable:
        return build.name, build.python

    def package(self, build: TensorflowBuild) -> list[Row]:
        keras = build.line["keras"]
        requirement = f"{keras['range']},{build.line['extra_pins'].get('keras', '')}".rstrip(",")
        return [
            row
            for row in self.releases
            if ranges(requirement).contains(row["version"]) and python_fits(row["requires_python"], build.python)
        ]

    def standalone(self, build: TensorflowBuild) -> list[Row]:
        """The matching release first, then others between those that match the neighbouring lines."""
        around = [row["keras"].get("standalone") for row in self.catalog.neighbours(build.name)]
        near = [version(text) for text in around if text]
        if not near:
            return []
        rows = [row for row in self.releases if min(near) <= version(row["version"]) <= max(near)]
        own = build.line["keras"].get("standalone")
        return sorted(rows, key=lambda row: row["version"] != own)

    def candidates(self, build: TensorflowBuild) -> list[Row | None]:
        """The releases that may be installed, the best first; None is no Keras, except for a line that requires the package."""
        keras = build.line["keras"]
        if keras.get("package"):
            return list(self.package(build))
        usual = keras.get("standalone") and build.python not in NO_PYYAML
        return [*self.standalone(build), None] if usual else [None, *self.standalone(build)]

    def best(self, build: TensorflowBuild, items: Sequence[Item]) -> Choice | None:
        for row in self.candidates(build):
            if all(item.accepts(row["version"] if row else None) for item in items):
                return self.choice(build, row) if row else Choice()
        return None

    def choice(self, build: TensorflowBuild, row: Row) -> Choice:
        keras, text = build.line["keras"], row["version"]
        if keras.get("package"):
            note = f"TensorFlow {build.name} requires {keras['range']}"
            return Choice({"keras": text}, [Finding(f"keras {text}: {note}", sources(build.line, row))])
        note = f"the multi-backend Keras of TensorFlow {build.name}'s time"
        choice = Choice({"keras": text}, [Finding(f"keras {text}: {note}", sources(row, build.line))])
        if build.python in NO_PYYAML:
            note = f"PyYAML, which Keras {text} requires, has no wheel for Python {build.python}"
            choice.warnings.append(Finding(note, (PYYAML,), refuses=False, doubt=True))
        own = keras.get("standalone")
        if text != own or not keras["standalone_verified"]:
            matching = f"; {own} is the matching one" if own and own != text else ""
            doubt = f"Keras {text} with TensorFlow {build.name} was not seen to run{matching}"
            choice.warnings.append(warning(doubt, sources(build.line)))
        return choice

    def facts(self, build: TensorflowBuild, items: Sequence[Item]) -> Iterator[Finding]:
        candidates = self.candidates(build)
        order = [row["version"] for row in reversed(self.releases)]
        goes = spans((row["version"] for row in candidates if row), order) or "no Keras of its own package"
        also = " or without it" if goes and None in candidates and len(candidates) > 1 else ""
        yield Finding(
            f"TensorFlow {build.name} on Python {build.python} goes with Keras {goes}{also}", sources(build.line)
        )
        legacy = build.line["keras"].get("legacy_package")
        old = [row["version"] for row in self.releases if version(row["version"]).major < 3]
        if legacy and any(item.accepts(text) for item in items for text in old):
            note = f"Keras 2 for it is the package {legacy} {build.line['keras']['legacy_range']}"
            yield Finding(note, sources(build.line))
        for item in items:
            yield Finding(f"{item.label} was requested", ())


def kafka_logins(compat: Compat, stack: Mapping[str, Any]) -> str:
    """What the stack's reader of Kafka can log in with at brokers (SASL), unless it has GSSAPI: then nothing."""
    part = "tensorflow_io" if stack.get("tensorflow_io") else "tensorflow"
    logins = [
        login
        for row in compat.rows("tensorflow_io", "kafka_logins")
        if row["part"] == part and version(row["first"]) <= version(stack[part]) <= version(row["last"])
        for login in row["logins"]
    ]
    known = f"logs in with {listed(logins, 'or')}, not" if logins else "is not known to log in"
    return "" if "GSSAPI" in logins else f"{part.replace('_', '-')} {stack[part]} {known} with Kerberos"


class TensorflowIo(Part):
    """Whether HDFS and Kafka can be read, by what TensorFlow has inside or by tensorflow-io."""

    level = "tensorflow_io"

    def __init__(self, catalog: BuildCatalog) -> None:
        self.catalog = catalog
        self.releases = catalog.compat.rows("tensorflow_io", "releases")
        self.beyond = {  # loaded on a line that its requirement does not name
            row["tensorflow"].rpartition(".")[0]: row
            for row in catalog.compat.rows("tensorflow_io", "observed")
            if row["result"] == "ok"
        }
        self.built = {row["feature"]: row for row in catalog.compat.rows("tensorflow_build", "from_source")}

    def classify(self, build: TensorflowBuild) -> Hashable:
        return build.name, build.source, build.python, build.package

    def inside(self, build: TensorflowBuild, feature: str) -> bool:
        if not build.from_source:
            return bool(build.line[feature]["prebuilt"])
        row = self.built[feature]
        return version(row["first"]) <= version(build.name) <= version(row["last"])

    def io(self, build: TensorflowBuild) -> list[Row]:
        """The releases of tensorflow-io for a line, a Python and a package, newest first."""
        rows = []
        for row in self.releases:
            beyond = self.beyond.get(build.name)
            fits = row["tensorflow"] == build.name or (beyond is not None and beyond["tensorflow_io"] == row["version"])
            has_wheel = row["on_pypi_linux"] and build.python in map(python_of, row["abis"])
            # Up to 0.22 it requires the distribution that is called tensorflow, so pip would install both.
            fits_package = row["declared_as"] == "extra" or build.package == "tensorflow" if has_wheel else False
            if fits and fits_package and python_fits(row["requires_python"], build.python):
                rows.append(row)
        return sorted(rows, key=lambda row: version(row["version"]), reverse=True)

    def candidates(self, build: TensorflowBuild, items: Sequence[Item]) -> list[Row | None]:
        asked_not = {item.key for item in items if item.text == "false"}
        useful = [name for name in ("hdfs", "kafka") if not self.inside(build, name) and name not in asked_not]
        rows: list[Row | None] = list(self.io(build))
        return [*rows, None] if useful else [None, *rows]

    def lack(self, build: TensorflowBuild, row: Row | None, feature: str) -> Finding | None:
        """Why a feature is missing with this release of tensorflow-io, or without any; None if it is not."""
        if self.inside(build, feature):
            return None
        if row is None:
            kind = "built from source" if build.from_source else "as a wheel"
            return Finding(f"TensorFlow {build.name} {kind} has no {NAMES[feature]} inside", sources(build.line))
        if row["hdfs_filesystem"] == "plugin" if feature == "hdfs" else row["kafka"]:
            return None
        return Finding(f"tensorflow-io {row['version']} does not read {NAMES[feature]}", sources(row))

    def best(self, build: TensorflowBuild, items: Sequence[Item]) -> Choice | None:
        off = {item.key for item in items if item.key in NAMES and not item.flag}
        rows = self.find(build, items)
        return self.choice(build, rows[0], off) if rows else None

    def find(self, build: TensorflowBuild, items: Sequence[Item]) -> list[Row | None]:
        """A list of one: the release of tensorflow-io, or None for none. An empty list if the items leave nothing."""
        flags = {item.key for item in items if item.key in NAMES and item.flag}
        if any(item.key in flags and not item.flag for item in items):
            return []
        pins = [item for item in items if item.key == "tensorflow_io"]
        for row in self.candidates(build, items):
            if not all(item.accepts(row["version"] if row else None) for item in pins):
                continue
            if not any(self.lack(build, row, feature) for feature in flags):
                return [row]
        return []

    def choice(self, build: TensorflowBuild, row: Row | None, off: set[str]) -> Choice:
        choice = Choice()
        if row:
            choice.values["tensorflow_io"] = row["version"]
            choice.reasons.append(
                Finding(f"tensorflow_io {row['version']}: made for TensorFlow {row['tensorflow']}", sources(row))
            )
            if row["tensorflow"] != build.name:
                observation = self.beyond[build.name]
                choice.warnings.append(
                    warning(
                        f"tensorflow-io {row['version']} is declared for TensorFlow {row['tensorflow']}; it was seen to load on {observation['tensorflow']}",
                        sources(observation),
                    )
                )
            if build.from_source:
                choice.warnings.append(
                    warning(
                        f"tensorflow-io {row['version']} is built against the official wheel: test it with yours",
                        sources(row),
                    )
                )
        for feature, name in NAMES.items():
            is_on = feature not in off and not self.lack(build, row, feature)
            choice.values[feature] = is_on
            by = (
                "by TensorFlow itself"
                if self.inside(build, feature)
                else f"by tensorflow-io {row['version']}"
                if row
                else ""
            )
            note = (
                f"{name} is read {by}" if is_on else "not requested" if feature in off else f"nothing here reads {name}"
            )
            if is_on and feature == "kafka":
                reader = {} if self.inside(build, feature) else {"tensorflow_io": choice.values["tensorflow_io"]}
                note += "; " + kafka_logins(self.catalog.compat, {"tensorflow": build.version, **reader})
            choice.reasons.append(Finding(f"{feature} {str(is_on).lower()}: {note}", sources(build.line)))
        return choice

    def facts(self, build: TensorflowBuild, items: Sequence[Item]) -> Iterator[Finding]:
        rows = self.io(build)
        for feature in NAMES:
            if any(item.key == feature and item.flag for item in items):
                lacks = [self.lack(build, row, feature) for row in (None, *rows)]
                yield from [finding for finding in lacks if finding][:2]
        versions = listed([row["version"] for row in rows], "or") or "not published"
        yield Finding(
            f"tensorflow-io for {build.package} {build.name} on Python {build.python} is {versions}",
            sources(self.catalog.compat.fact("tensorflow_io", "last release"), *rows[:1]),
        )
        for item in items:
            yield Finding(f"{item.label} was requested", ())
