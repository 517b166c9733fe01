"""What CDSW's master answered about a host, and what an engine image is made from, as filters."""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from hadoop_dl.data import cdsw_nodes, engine_image


def engine_image_work(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What the role cdsw_engine builds, from its inputs. The work is in lib/hadoop_dl/data/engine_image.py."""
    try:
        return engine_image.work(inputs)
    except engine_image.EngineError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "cdsw_answer": cdsw_nodes.answer,
            "cdsw_absence": cdsw_nodes.absence,
            "cdsw_miscount": cdsw_nodes.miscount,
            "cdsw_gpus": cdsw_nodes.gpus,
            "engine_image_work": engine_image_work,
            "engine_image_registration": engine_image.registration,
        }
