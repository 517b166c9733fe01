"""Versions as text and as numbers."""

import re


def numbers(text: str) -> tuple[int, ...]:
    """A version's numbers, to compare: 10.10 is later than 10.9."""
    return tuple(int(part) for part in re.findall(r"[0-9]+", text))


def upstream(version: str) -> str:
    """A package's version without epoch and release: 4.5.2 of 1:4.5.2-1."""
    return version.rpartition(":")[2].partition("-")[0]
