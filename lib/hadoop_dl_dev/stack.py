"""scripts/stack docs and data: what maintainers write and compare. The other commands, which need no more than PyYAML, are in hadoop_dl.cli.stack."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from hadoop_dl.cli import stack
from hadoop_dl_dev import compat_docs, data_update, input_docs, tested


def docs_command(arguments: Sequence[str]) -> int:
    """docs/compatibility.md, docs/inputs.md and docs/stacks.md: written, or compared (--check)."""
    status = compat_docs.main(list(arguments)) | input_docs.write(check="--check" in arguments)
    return status | tested.main(list(arguments))


COMMANDS: dict[str, stack.Command] = {**stack.COMMANDS, "docs": docs_command, "data": data_update.main}


if __name__ == "__main__":
    sys.exit(stack.main(commands=COMMANDS))
