"""The argument parser of the commands: misuse is an exception, and its message names the nearest option."""

import argparse
import re
from pathlib import Path
from typing import NoReturn

from hadoop_dl.resolver.request import Misuse, nearest_name


class Parser(argparse.ArgumentParser):
    """Misuse is exit code 1: 2 says that a request cannot be met."""

    def error(self, message: str) -> NoReturn:
        options = [option for action in self._actions for option in action.option_strings if option.startswith("--")]
        unknown = re.search(r"unrecognized arguments: (--[\w-]+)", message)
        hint = nearest_name(unknown[1].lstrip("-"), [name.lstrip("-") for name in options]) if unknown else ""
        hint = hint.replace("mean ", "mean --")
        raise Misuse(f"{message}.{hint} See: scripts/{self.prog} --help")

    def add_stacks(self) -> None:
        self.add_argument(
            "--stacks", type=Path, metavar="DIR", help="a site's own stacks, too: inventories/SITE/stacks"
        )

    def add_format(self) -> None:
        self.add_argument("--format", choices=("table", "json"), default="table", help="for people or for programs")
