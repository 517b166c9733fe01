"""What the roles cuda, cudnn and nccl do, as filters. The work is in lib/hadoop_dl/data/cuda_packages.py."""

from collections.abc import Callable
from typing import Any

from hadoop_dl.data import cuda_packages


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cuda_package_work": cuda_packages.work, "cuda_package_paths": cuda_packages.paths}
