"""A version as numbers, to compare: 10.10 is later than 10.9."""

from __future__ import annotations

import re


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]+", text))
