"""What the role tensorflow_build does, as a filter. The work is in lib/hadoop_dl/data/tensorflow_build.py."""

from collections.abc import Callable
from typing import Any

from hadoop_dl.data import tensorflow_build


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"tensorflow_build_work": tensorflow_build.work}
