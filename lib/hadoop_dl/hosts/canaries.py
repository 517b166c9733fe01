"""Which hosts are switched to a new environment before the others. Pure functions."""

import re
from collections.abc import Sequence

from hadoop_dl.plan.model import shorten


def chosen(hosts: Sequence[str], request: object) -> list[str]:
    """The first hosts of a number or share, or those that are named; ValueError says what is wrong with the request."""
    text = "" if request is None else str(request).strip()
    if not isinstance(request, list) and re.fullmatch(r"\d{1,6}%?", text):
        return counted(hosts, text)
    words = request if isinstance(request, list) else text.split(",")
    names = [str(word).strip() for word in words if str(word).strip()]
    unknown = [name for name in names if name not in hosts]
    if unknown:
        raise ValueError(
            f"upgrade_canary must be a number of hosts, a share such as 10%, or names of hosts that get an environment in this run "
            f"({shorten(hosts)}), but has {', '.join(unknown)}. No host was changed. Correct it, or leave it out."
        )
    return left_over(hosts, names, text)


def counted(hosts: Sequence[str], text: str) -> list[str]:
    """The first ones of a number, or of a share, which is at least one host."""
    number = int(text.rstrip("%"))
    return left_over(hosts, hosts[: -(-len(hosts) * number // 100) if text.endswith("%") else number], text)


def left_over(hosts: Sequence[str], canaries: Sequence[str], text: str) -> list[str]:
    if canaries and len(canaries) >= len(hosts):
        raise ValueError(
            f"upgrade_canary must leave hosts that are switched after the canaries, but {text} leaves none of {len(hosts)}. "
            "No host was changed. Give a smaller number, or leave it out."
        )
    return list(canaries)
