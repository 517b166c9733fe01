"""Which row of CDSW's table of nodes is a host's, and what an engine image is made from, as filters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from hadoop_dl.data import engine_image


def cdsw_gpus(gpus: Mapping[str, int] | None, node: str) -> int | None:
    """The GPUs that CDSW detected on this host, which it may name with or without its domain; None where it does not tell."""
    for name, count in (gpus or {}).items():
        if name == node or name.split(".")[0] == node.split(".")[0]:
            return count
    return None


def engine_image_work(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the role cdsw_engine builds, from its inputs. The work is in lib/hadoop_dl/data/engine_image.py."""
    try:
        return engine_image.work(given)
    except engine_image.EngineError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "cdsw_gpus": cdsw_gpus,
            "engine_image_work": engine_image_work,
            "engine_image_registration": engine_image.registration,
        }
