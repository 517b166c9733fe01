"""Versions and constraints: a prefix (`1.15` is any 1.15.x), a pip-style range, or `none`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

NONE = ("none", "absent", "no")
LONGEST = 200  # characters of a constraint; Python refuses to read a number of more than 4,300 digits


@lru_cache(maxsize=8192)
def version(text: str) -> Version:
    return Version(text)


def known(text: str) -> bool:
    """Whether this text is a version at all."""
    if len(text) > LONGEST:
        return False
    try:
        version(text)
    except InvalidVersion:
        return False
    return True


def newest(texts: Iterable[str]) -> list[str]:
    return sorted(texts, key=version, reverse=True)


@lru_cache(maxsize=256)
def cc(text: str) -> tuple[int, int]:
    """A compute capability as two numbers."""
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


@dataclass(frozen=True)
class Spec:
    """One constraint. `kind` is prefix, range, none, or invalid (a text that no version can have)."""

    text: str
    kind: str

    def accepts(self, value: str | None) -> bool:
        if self.kind == "none":
            return value is None
        if value is None or self.kind == "invalid":
            return False
        return accepts(self, value)


@lru_cache(maxsize=65536)
def accepts(spec: Spec, value: str) -> bool:
    if spec.kind == "range":
        return known(value) and ranges(spec.text).contains(value, prereleases=True)
    if value == spec.text:
        return True
    if value.startswith(spec.text + "."):
        # 2.15.0 is that release, not its post releases; 2.15 is all of them.
        return not value[len(spec.text) + 1 :].startswith("post") or spec.text.count(".") < 2
    return known(value) and known(spec.text) and version(value) == version(spec.text)


@lru_cache(maxsize=4096)
def ranges(text: str) -> SpecifierSet:
    return SpecifierSet(text)


def parse_spec(constraint: str) -> Spec:
    """Read a constraint as people write it; a text that is no version becomes a constraint that nothing meets."""
    text = re.sub(r"\s+", "", str(constraint))
    if text.lower() in NONE:
        return Spec("none", "none")
    if re.match(r"=[^=]", text):
        text = "=" + text
    if re.fullmatch(r"[\w.]+\.\*", text):
        text = text[:-2]
    if re.match(r"[<>=!~]", text):
        try:
            SpecifierSet(text)
        except InvalidSpecifier:
            return Spec(text, "invalid")
        return Spec(text, "range")
    return Spec(text, "prefix" if known(text) else "invalid")


def listed(values: Iterable[str], last: str = "and") -> str:
    """`2.7, 3.5 and 3.6`."""
    texts = list(values)
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} {last} {texts[-1]}"


def spans(values: Iterable[str], order: list[str]) -> str:
    """Values of an ordered list as spans: `1.0 to 1.15 and 2.4`."""
    value_set = set(values)
    groups: list[list[str]] = []
    previous = -2
    for place, value in enumerate(order):
        if value not in value_set:
            continue
        if place == previous + 1:
            groups[-1].append(value)
        else:
            groups.append([value])
        previous = place
    return listed(part[0] if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in groups)
