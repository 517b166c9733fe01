"""Which row of CDSW's table of nodes is a host's, as a filter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def cdsw_gpus(gpus: Mapping[str, int] | None, node: str) -> int | None:
    """The GPUs that CDSW detected on this host, which it may name with or without its domain; None where it does not tell."""
    for name, count in (gpus or {}).items():
        if name == node or name.split(".")[0] == node.split(".")[0]:
            return count
    return None


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cdsw_gpus": cdsw_gpus}
