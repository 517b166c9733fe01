"""What the role bazel does, as a filter. The work is in lib/hadoop_dl/data/bazel.py."""

from collections.abc import Callable
from typing import Any

from hadoop_dl.data import bazel


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"bazel_work": bazel.work}
