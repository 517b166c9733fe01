"""Operating systems and Hadoop distributions by the names that people and hosts have for them."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from hadoop_dl.data.compat import Compat, Row
from hadoop_dl.resolver.versions import known, version

ALIASES = {
    "redhat": "rhel",
    "oracle": "ol",
    "oraclelinux": "ol",
    "alma": "almalinux",
    "rockylinux": "rocky",
    "centosstream": "centos",
    "sl": "scientific",
    "amazon": "amzn",
    "al": "amzn",
    "suse": "sles",
    "leap": "opensuse",
    "opensuseleap": "opensuse",
}
NAMES = {
    "rhel": "RHEL",
    "el": "EL",
    "centos": "CentOS",
    "ol": "Oracle Linux",
    "almalinux": "AlmaLinux",
    "sles": "SLES",
    "opensuse": "openSUSE",
    "amzn": "Amazon Linux",
}


# What to give in place of a name that is not known: an example, and where its values come from.
OTHER_SYSTEM = "other glibc=2.39 python=3.12", "`ldd --version` and `python3 --version` print"
OTHER_HADOOP = "apache-X.Y.Z", "`hadoop version` prints"
# Words beside the name and the number in os-release and in requests.
WORDS = re.compile(r"\(.*\)|\b(gnu/linux|linux|enterprise|server|stream|lts|x86_64)\b|-x86_64$|\s+")


@dataclass(frozen=True)
class System:
    """An operating system that the data knows. `key` is its name there (rhel7), `label` what to call it, `release` 7.9 or 7."""

    key: str
    label: str
    release: str
    # glibc and Pythons of an operating system that the data does not have.
    other: tuple[str, tuple[str, ...]] | None = None


@dataclass(frozen=True)
class Unknown:
    """A name that is not known; `why` is a sentence, `near` the names to try."""

    why: str
    near: tuple[str, ...]


def known_systems(compat: Compat) -> list[str]:
    """Names for --os, such as rhel-7.9, one for each row of the data."""
    return [system_name(row) for row in compat.rows("platforms", "releases")]


def system_name(row: Row) -> str:
    family, digits = re.fullmatch(r"([a-z]+)(\d+)", row["os"]).groups()  # type: ignore[union-attr]
    if family == "ubuntu":
        return f"ubuntu-{digits[:2]}.{digits[2:]}"
    return f"{family}-{row['last_minor'] or digits}"


def find_system(compat: Compat, text: str) -> System | Unknown:
    """The operating system that a text such as rhel-7.9, centos7, el8, rocky-9.3, debian-12 or ubuntu2204 names."""
    if text.lower().startswith("other"):
        return other_system(text)
    plain = WORDS.sub(" ", text.lower()).strip().replace(" ", "-")
    plain = re.sub(r"-?sp-?(\d+)$", r".\1", plain)  # SLES 15 SP5 is 15.5 in os-release
    match = re.fullmatch(r"([a-z][a-z_-]*?)[-_]?v?(\d+(?:\.\d+)*)", plain)
    rows = compat.rows("platforms", "releases")
    systems = known_systems(compat)
    if not match:
        return unknown_system(text, plain, systems, rows)
    family = re.sub(r"[-_]", "", match[1])
    family = ALIASES.get(family, family)
    number = match[2]
    if family == "ubuntu" and re.fullmatch(r"\d{4}", number):
        number = f"{number[:2]}.{number[2:]}"
    for row in rows:
        digits = row["os"].lstrip("abcdefghijklmnopqrstuvwxyz")
        if family not in row["ids"]:
            continue
        if family == "ubuntu":
            if number.replace(".", "").startswith(digits) and number.split(".")[:2] == [digits[:2], digits[2:]]:
                return System(row["os"], f"Ubuntu {number}", number)
        elif number.split(".")[0] == digits:
            last = row["last_minor"]
            if last and len(number.split(".")) > 1 and int(number.split(".")[1]) > int(last.split(".")[1]):
                return Unknown(
                    f"There is no {text}: the last release of that line is {last} ({row['source'][-1]}).",
                    (f"{match[1]}-{last}",),
                )
            return System(row["os"], f"{label(family)} {number}", number)
    return unknown_system(text, plain, systems, rows)


def other_system(text: str) -> System | Unknown:
    """`other glibc=2.39 python=3.12`: an operating system of which only these two are known."""
    values = dict(re.findall(r"(glibc|python)=([\d.,]+\d)", text.lower()))
    if set(values) != {"glibc", "python"} or not all(
        known(number) for number in [values["glibc"], *values["python"].split(",")]
    ):
        return Unknown(
            f"{text} names no operating system: other needs its glibc and its Python.",
            (OTHER_SYSTEM[0],),
        )
    pythons = tuple(sorted(values["python"].split(","), key=version))
    return System("other", f"an operating system with glibc {values['glibc']}", "0", (values["glibc"], pythons))


def label(family: str) -> str:
    return NAMES.get(family, family.capitalize())


def unknown_system(text: str, plain: str, systems: list[str], rows: list[Row]) -> Unknown:
    family = re.split(r"[-_\d]", plain)[0]
    family = ALIASES.get(family, family)
    same_family = [name for name, row in zip(systems, rows, strict=True) if family in row["ids"]]
    number = re.search(r"\d+", plain)
    if same_family and not number:
        return Unknown(f"Which release of {text}?", tuple(same_family))
    if same_family and number:
        same_family.sort(key=lambda name: abs(int(re.search(r"\d+", name)[0]) - int(number[0])))  # type: ignore[index]
    near = same_family[:2] or difflib.get_close_matches(plain, systems, n=2, cutoff=0.4) or systems[:2]
    why = f"No operating system called {text} is known here. For any other: --os '{OTHER_SYSTEM[0]}'."
    return Unknown(why, tuple(near))


@dataclass(frozen=True)
class Hadoop:
    """A Hadoop distribution's release: the Apache version inside, and the Java that it runs on.

    `newer`: if its own data is not verified, the next release of the distribution of which it is.
    """

    label: str
    hadoop: str | None
    java: tuple[str, ...]
    verified: bool
    sources: tuple[str, ...]
    newer: Hadoop | None = None

    @property
    def has_maprfs(self) -> bool:
        """Whether its file system is maprfs://, which TensorFlow does not read."""
        return self.label.lower().startswith("mapr")

    @property
    def release(self) -> str:
        """Its Apache version; if that is not known, the one of a later release, which it is older than."""
        return self.hadoop or (self.newer and self.newer.hadoop) or ""

    def is_untried(self, spark: str) -> bool:
        """Whether Spark 3 or later, whose Hadoop client is of line 3, would run on Hadoop 2: no test ran that."""
        return bool(self.release) and version(self.release).major < 3 <= version(spark).major


HADOOP_NAMES = {"apache": "Apache Hadoop", "mapr": "MapR"}


def find_hadoop(compat: Compat, text: str) -> Hadoop | Unknown:
    """The distribution's release that a text such as cdh-5.16, hdp3.1 or apache-3.3.6 names."""
    rows = compat.rows("hadoop", "distributions")
    names = [f"{row['distribution']}-{row['last']}" for row in rows]
    if text.strip().lower() == "mapr":  # as hosts report it
        return Hadoop("MapR", None, (), False, ())
    # A parcel's version goes on with its build, a service pack is the same release: 7.1.9-1.cdh7.1.9.p0.44702451, 7.1.7.p1000.
    plain = re.sub(r"(?<=\d)(-1\.cdh|[-_. ](sp|p)\d).*", "", text.strip().lower())
    match = re.fullmatch(r"([a-z]+)[-_ ]?v?(\d+(?:\.\d+)*)", plain)
    family = {"hadoop": "apache"}.get(match[1], match[1]) if match else ""
    if match and family == "cdh" and version(match[2]).major == 7:
        family = "cdp"  # its parcel is called CDH-7.1.7
    own = [row for row in rows if row["distribution"] == family]
    if match and own:
        exact = version(match[2]).release
        later = [row for row in own if row["verified"] and _compared(row["last"], exact) > 0]
        newer = min(later, key=lambda row: version(row["first"]), default=None)
        row = next((row for row in own if _compared(row["first"], exact) <= 0 <= _compared(row["last"], exact)), None)
        if row:
            return hadoop_of(row, match[2], None if row["verified"] else newer)
        if any(_compared(row["last"], exact) > 0 for row in own):
            # Older than a known release: not known is no reason to refuse.
            known_later = hadoop_of(newer, newer["first"]) if newer else None
            return Hadoop(hadoop_label(family, match[2]), None, (), False, tuple(own[0]["source"]), known_later)
        same_family = [name for name in names if name.startswith(family + "-")]
        same_family.sort(key=lambda name: _distance(version(name.partition("-")[2]).release, exact))
        return Unknown(f"No Hadoop release called {text} is known here.", tuple(same_family[:2]))
    near = difflib.get_close_matches(text.lower(), names, n=2, cutoff=0.4) or names[:1]
    hint = (
        "CDSW is requested with cdsw=true."
        if "cdsw" in text.lower()
        else f"Of any other, name the Apache release: --hadoop {OTHER_HADOOP[0]}."
    )
    return Unknown(f"No Hadoop distribution called {text} is known here. {hint}", tuple(near))


def hadoop_of(row: Row, release: str, newer: Row | None = None) -> Hadoop:
    """A release of a row. Apache's release is the Hadoop version itself: that needs no source of its own."""
    apache = row["distribution"] == "apache"
    return Hadoop(
        hadoop_label(row["distribution"], release),
        release if apache and len(release.split(".")) > 2 else row["hadoop"],
        tuple(row["java"]),
        row["verified"] or apache,
        tuple(row["source"]),
        hadoop_of(newer, newer["first"]) if newer and not apache else None,
    )


def hadoop_label(family: str, release: str) -> str:
    return f"{HADOOP_NAMES.get(family, family.upper())} {release}"


def _compared(bound: str, exact: tuple[int, ...]) -> int:
    """-1, 0 or 1: a bound against a release, as far as both are given."""
    release = version(bound).release
    width = min(len(release), len(exact))
    return (release[:width] > exact[:width]) - (release[:width] < exact[:width])


def _distance(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    width = max(len(left), len(right))
    pairs = zip(left + (0,) * (width - len(left)), right + (0,) * (width - len(right)), strict=True)
    return tuple(abs(a - b) for a, b in pairs)
