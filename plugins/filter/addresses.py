"""Questions about the mirror's inputs as filters; those with _problem answer an empty text, or why it cannot be used. The work is in lib/hadoop_dl/data/addresses.py."""

from collections.abc import Callable
from functools import partial
from typing import Any

from hadoop_dl.data import addresses


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "mirror_index_problem": addresses.mirror_index_problem,
            "mirror_url_problem": addresses.mirror_url_problem,
            "mirror_root_problem": partial(addresses.own_directory_problem, "mirror_root"),
        }
