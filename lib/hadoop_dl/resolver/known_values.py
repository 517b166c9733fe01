"""The values of each component in the data, each with its row."""

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from hadoop_dl.data.compat import Row
from hadoop_dl.resolver.builds import BuildCatalog, TensorflowBuild
from hadoop_dl.resolver.request import CHOICES
from hadoop_dl.resolver.rules.driver_branches import least_driver
from hadoop_dl.resolver.versions import Spec, known, version

# Where a component's values are one column of one list.
COLUMNS = {
    "os": ("platforms", "releases", "os"),
    "gpu": ("gpus", "devices", "name"),
    "hadoop": ("hadoop", "distributions", "distribution"),
    "python": ("python", "pythons", "python"),
    "cuda": ("cuda", "toolkits", "version"),
    "driver": ("drivers", "branches", "latest_known"),
    "driver_branch": ("drivers", "branches", "branch"),
    "driver_module": ("drivers", "modules", "module"),
    "keras": ("keras", "releases", "version"),
    "tensorflow": ("tensorflow", "releases", "version"),
    "tensorflowonspark": ("tensorflowonspark", "releases", "version"),
    "cdsw": ("cdsw", "facts", "fact"),
    "yarn_gpu": ("hadoop", "facts", "fact"),
    "hdfs": ("tensorflow", "lines", "line"),
    "kafka": ("tensorflow", "lines", "line"),
}
# Properties of a TensorFlow build. Only values that some build has can be in an answer.
OF_BUILDS: dict[str, Callable[[TensorflowBuild, BuildCatalog], str | None]] = {
    "tensorflow": lambda build, _: build.version,
    "tensorflow_package": lambda build, _: build.package,
    "tensorflow_source": lambda build, _: build.source,
    "python": lambda build, _: build.python,
    "cuda": lambda build, _: build.cuda,
    "nccl": lambda build, _: build.nccl,
    "glibc_min": lambda build, _: build.glibc_min,
    "driver_min": lambda build, catalog: least_driver(catalog.toolkits[build.cuda]) if build.cuda else None,
}


def build_value(build: TensorflowBuild, key: str, catalog: BuildCatalog) -> str | None:
    """A TensorFlow's own value of a component."""
    return OF_BUILDS[key](build, catalog)


def value_rows(catalog: BuildCatalog, key: str) -> Iterator[tuple[str, Row]]:
    """The values of a component with the row that each is written in."""
    compat, lines = catalog.compat, catalog.compat.rows("tensorflow", "lines")
    if key in COLUMNS:
        subject, name, column = COLUMNS[key]
        # A driver branch whose packages were not seen is answered, and never offered.
        rows = (row for row in compat.rows(subject, name) if subject != "drivers" or row.get("releases") != {})
        yield from ((str(row[column]), row) for row in rows)
    elif key == "bazel":
        yield from ((row["bazel"][name], row) for row in lines for name in ("min", "tested"))
    elif key == "gcc":
        yield from ((row["compiler"]["version"], row) for row in lines if row["compiler"]["name"] == "gcc")
    elif key == "nccl":
        yield from ((re.sub(r"^[<>=~]+|,.*", "", row["nccl"]), row) for row in lines if row["nccl"])
    elif key == "cudnn":
        yield from ((row["version"], row) for row in compat.rows("cuda", "cudnn"))
        yield from ((row["cudnn"], row) for row in lines)
    elif key == "glibc_min":
        yield from ((row["wheel_min_glibc"], row) for row in lines)
    elif key == "driver_min":
        yield from ((least_driver(row), row) for row in compat.rows("cuda", "toolkits"))
    elif key == "cpu_features":
        yield from ((",".join(row["features"]), row) for row in compat.rows("tensorflow", "cpu_features"))
    elif key == "pyspark":
        yield from ((release, row) for row in compat.rows("spark", "lines") for release in row["releases"])
    elif key == "java":
        yield from ((java, row) for row in compat.rows("spark", "lines") for java in row["java"] or [])
    elif key == "tensorflow_io":
        yield from ((row["version"], row) for row in compat.rows("tensorflow_io", "releases") if row["on_pypi_linux"])
    elif key in ("tensorflow_package", "tensorflow_source"):
        yield from ((choice, lines[-1]) for choice in CHOICES[key])


def values(catalog: BuildCatalog, key: str) -> list[str]:
    """All values of a component that an answer can have, oldest first."""
    return list(_values(catalog, key))


@lru_cache(maxsize=128)
def _values(catalog: BuildCatalog, key: str) -> tuple[str, ...]:
    unique_values = {value for value, _ in value_rows(catalog, key)}
    if key in OF_BUILDS:
        unique_values = {value for build in catalog.builds if (value := build_value(build, key, catalog))}
    return tuple(sorted(unique_values, key=lambda text: (version(text) if known(text) else version("0"), text)))


def nearest_values(spec: Spec, known_values: Sequence[str]) -> list[str]:
    """The known values around the one that was asked for."""
    text = spec.text.lstrip("<>=!~").partition(",")[0].removesuffix(".*")
    if not known(text):
        return difflib.get_close_matches(spec.text, known_values, n=2, cutoff=0.3) or list(known_values[-1:])
    asked_version = version(text)
    comparable = [value for value in known_values if known(value)]
    below = [value for value in comparable if version(value) < asked_version]
    above = [value for value in comparable if version(value) > asked_version]
    return [*below[-1:], *above[:1]]
