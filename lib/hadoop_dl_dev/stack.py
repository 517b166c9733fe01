"""scripts/stack data, for maintainers. The other commands, which need no more than PyYAML, are in hadoop_dl.cli.stack."""

import sys

from hadoop_dl.cli import stack
from hadoop_dl_dev import data_check

COMMANDS: dict[str, stack.Command] = {**stack.COMMANDS, "data": data_check.main}


if __name__ == "__main__":
    sys.exit(stack.main(commands=COMMANDS))
