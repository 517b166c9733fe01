"""scripts/stack docs and data, for maintainers. The other commands, which need no more than PyYAML, are in hadoop_dl.cli.stack."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from hadoop_dl.cli import stack
from hadoop_dl.cli.arguments import Parser
from hadoop_dl.data.compat import REPOSITORY
from hadoop_dl_dev import compat_docs, data_update, hint_docs, input_docs, tested, xid_module

PAGES = (
    (compat_docs, "compat/ and stacks/ say"),
    (input_docs, "the roles' inputs are"),
    (hint_docs, "tfos_submit/hints.json says"),
    (tested, "stacks/ and stacks/locks/tested.yml say"),
    (xid_module, "compat/xids.yml says"),
)


def docs_command(arguments: Sequence[str]) -> int:
    """Exit status 0: the generated pages are written or current; 1: one is not current."""
    parser = Parser(
        prog="stack docs",
        description="Write the generated pages of docs/, and gpu-check's module of Xids.",
        allow_abbrev=False,
    )
    parser.add_argument("--check", action="store_true", help="write nothing; report whether the pages are current")
    options = parser.parse_args(list(arguments))
    status = 0
    for source, say in PAGES:
        name, text = os.path.relpath(source.PAGE, REPOSITORY), source.page()
        if source.PAGE.exists() and source.PAGE.read_text(encoding="utf-8") == text:
            print(f"{name} is current.")
        elif options.check:
            print(f"{name} is not what {say} now. Run scripts/stack docs, and commit it with them.")
            status = 1
        else:
            source.PAGE.write_text(text, encoding="utf-8")
            print(f"{name} was written.")
    return status


COMMANDS: dict[str, stack.Command] = {**stack.COMMANDS, "docs": docs_command, "data": data_update.main}


if __name__ == "__main__":
    sys.exit(stack.main(commands=COMMANDS))
