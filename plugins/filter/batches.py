"""Filters about how many hosts change at once."""

from collections.abc import Callable
from typing import Any

SHARE = 4  # more than one in so many hosts are many


def hosts_at_once(batch: int | str, hosts: int | str) -> int:
    """How many of the hosts a play with `serial: batch` takes at a time; a share is at least one host, as Ansible has it."""
    text = str(batch)
    if text.endswith("%"):
        return max(1, int(text[:-1]) * int(hosts) // 100)
    return min(int(text), int(hosts))


def many_at_once(number: int | str, hosts: int | str) -> bool:
    """Whether so many must be confirmed; one host at a time never."""
    return int(number) > 1 and int(number) * SHARE > int(hosts)


class FilterModule:
    """Names for templates."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"hosts_at_once": hosts_at_once, "many_at_once": many_at_once}
