"""What the role nvidia_driver concludes, as filters. The work is in lib/hadoop_dl/data/driver_choices.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hadoop_dl.data import driver_choices


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "command_words": driver_choices.said,
            "driver_header_packages": driver_choices.header_packages,
            "driver_kernels_with_nouveau": driver_choices.kernels_with_nouveau,
            "driver_kernels_without_arguments": driver_choices.kernels_without_arguments,
            "driver_module_is_right": driver_choices.module_is_right,
            "driver_module_problem": driver_choices.module_problem,
            "driver_origin": driver_choices.origin,
            "driver_reboot_reason": driver_choices.reboot_reason,
            "driver_signers": driver_choices.signers,
        }
