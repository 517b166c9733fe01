"""The command scripts/stack in this process."""

import shlex
from pathlib import Path

import pytest

from hadoop_dl.cli.stack import main
from hadoop_dl_dev import stack

STACK = Path(__file__).resolve().parents[3] / "scripts" / "stack"


def run(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    status = main(shlex.split(line), stack.COMMANDS)
    streams = capsys.readouterr()
    return status, streams.out, streams.err
