"""Tests of the mirror's inputs as filters: an empty text, or why it cannot be used. The work is in lib/hadoop_dl/hosts/addresses.py."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "lib"))

from hadoop_dl.hosts import addresses  # noqa: E402  (the path above comes first)


class FilterModule:
    def filters(self) -> dict[str, Callable[[Any], str]]:
        return {
            "mirror_url_problem": addresses.mirror_url_problem,
            "mirror_root_problem": addresses.mirror_root_problem,
        }
