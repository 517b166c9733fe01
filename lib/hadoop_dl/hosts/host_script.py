"""Scripts that are piped into a host's Python: packed out of modules, started so that root imports nothing of the ssh user's.

An ordinary module costs about twice as much, because every host unpacks and imports a zip (docs/reference/performance.md).
"""

import base64
import gzip
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hadoop_dl.data import host_code
from hadoop_dl.data.terminal import LONGEST, one_line, printable_values

REPORT_READER = host_code.REPOSITORY / "roles/verify/files/report_reader.py"
# The first that exists is used: RHEL 8 and 9 have the system's own Python in libexec.
INTERPRETERS = (
    "/usr/bin/python3",
    "/usr/libexec/platform-python",
    "/usr/bin/python2.7",
    "/usr/bin/python",
)
UNREACHABLE = 255  # ssh's own exit status
LARGEST = 8 << 20  # characters of an answer; the recorded hosts of the tests answer less than 4 KB
DIGITS = 40  # of a number; Python refuses to read one of more than 4,300


class NoAnswer(Exception):
    """The script printed no result."""


def command(file: str = "") -> str:
    """The shell command that runs the script on its standard input, or in a file on the host.

    -E and -s: no variable of the caller and no directory of a user adds modules. -I means both, but Python 2.7 lacks it.
    """
    places, source = " ".join(INTERPRETERS), f" < {shlex.quote(file)}" if file else ""
    start = f'cd / && for p in {places}; do [ -x "$p" ] && exec "$p" -E -s -{source}; done'
    return f"{start}; echo no-python >&2; exit 127"


def one_command(script: str) -> str:
    """The same with the script as an argument, for callers without standard input. An argument may have 128 KiB: it is compressed."""
    packed = base64.b64encode(gzip.compress(script.encode(), mtime=0)).decode()
    return f"echo {packed} | base64 -d | gzip -d | ( {command()} )"


def pack(sources: Mapping[str, Path], *arguments: object) -> str:
    """One script out of these modules and what they import; it calls main of the last one with these arguments."""
    texts = [(name, path.read_bytes()) for name, path in host_code.complete(sources).items()]
    # `python -` imports from the current directory first, so that entry goes before the first import of a file.
    # `from __future__` must come first in a text, so every module is compiled from its own.
    return (
        "import sys\n"
        "sys.path[:] = [place for place in sys.path if place]\n"
        "import types\n"
        f"for name, source in {texts!r}:\n"
        "    module = types.ModuleType(name)\n"
        "    parent, _, child = name.rpartition('.')\n"
        "    module.__package__, module.__path__ = parent, []\n"
        "    sys.modules[name] = module\n"
        "    exec(compile(source, name + '.py', 'exec'), module.__dict__)\n"
        "    if parent:\n"
        "        setattr(sys.modules[parent], child, module)\n"
        f"module.main({', '.join(map(ascii, arguments))})\n"
    )


def reader(names: Sequence[str] = ()) -> str:
    """The script that reads a host for the plan; of these paths and accounts, whether it has them."""
    return pack({f"{host_code.PACKAGE}.host_reader": host_code.DIRECTORY / "host_reader.py"}, list(names))


def report_reader(names: Sequence[str] = (), *, asks_yarn: bool = False) -> str:
    """The script that reads a host for the report: the reader's facts, gpu-check's questions, what GPUs do, and times."""
    return pack({"report_reader": REPORT_READER}, list(names), asks_yarn)


def acceptance(gpu_count: str) -> str:
    """The script that measures what a host's GPUs copy (gpu-check --accept), of which the inventory promises so many."""
    return pack({"gpu_check.acceptance": host_code.GPU_CHECK / "acceptance.py"}, gpu_count)


def parse(status: int, output: str, error: str) -> dict[str, Any]:
    """The JSON that the script printed, on the last line that is an object. Its content may be anything, but size and depth are limited."""
    if len(output) > LARGEST:
        raise NoAnswer(
            f"it answered {len(output) >> 20} MB, at most {LARGEST >> 20} MB are read. Look for what prints there: a shell's start files, or a "
            "program in the place of Python."
        )
    if status == 127 and "no-python" in error + output:
        raise NoAnswer(
            f"Python 2.7 or 3 is required, but none of {', '.join(INTERPRETERS)} exists. Install it with the operating "
            "system's package manager."
        )
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            try:
                answer: dict[str, Any] = printable_values(json.loads(line, parse_int=number))
            except RecursionError:
                raise NoAnswer("it answered JSON that is nested too deeply.") from None
            except ValueError:
                continue
            if "late" in answer:
                raise NoAnswer(one_line(answer["late"], 500))
            return answer
    reason = last_line(error) or last_line(output)
    if status == UNREACHABLE:
        raise NoAnswer(reason or "the connection broke")
    raise NoAnswer(
        f"the host could not be read: exit status {status}, {reason or 'no output'!r}. "
        "Try by hand: ansible HOST -m ansible.builtin.raw -a id -b"
    )


def number(digits: str) -> int | float:
    """A number of any length; one of more than DIGITS digits becomes a float."""
    return int(digits) if len(digits) <= DIGITS else float(digits)


def last_line(text: str) -> str:
    """The last line that a program printed, made safe to print."""
    lines = text[-10 * LONGEST :].strip().splitlines()
    return one_line(lines[-1]) if lines else ""
