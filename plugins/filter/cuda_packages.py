"""What the roles cuda, cudnn and nccl do, as filters. The work is in lib/hadoop_dl/data/cuda_packages.py."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "lib"))

from hadoop_dl.data import cuda_packages  # noqa: E402  (the path above comes first)


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cuda_package_work": cuda_packages.work, "cuda_package_paths": cuda_packages.paths}
