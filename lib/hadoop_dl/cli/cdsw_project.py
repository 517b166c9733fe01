"""Write a project for Cloudera Data Science Workbench: a stack's lock as requirements of pip, the program that installs them, and examples."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from ansible.module_utils.hadoop_dl_host import source_wheels

from hadoop_dl.cli.arguments import Parser
from hadoop_dl.data import cdsw, host_code
from hadoop_dl.data.engine_image import HTTP, sections
from hadoop_dl.data.locks import Lock
from hadoop_dl.data.stacks import Stack, add_directory, load_stack
from hadoop_dl.resolver.request import Misuse

REPOSITORY = Path(__file__).resolve().parents[3]
EXAMPLES = REPOSITORY / "examples"
FILES: tuple[str, ...] = (
    "cdsw/install.py",
    "cdsw/run_tensorboard.py",
    "cdsw/digits_cnn.py",
    "cdsw/digits_with_summaries.py",
    "benchmark/benchmark.py",
    "benchmark/networks.py",
)
FILES += ("digits/digits.py", "digits/data/digits.csv.gz", "digits/data/README.md")
MARK = "stack.json"
# CDSW runs a file of this name in the image of each model and experiment, which gets no package that a session installed.
BUILD = '#!/bin/sh\nexec python%s "$(dirname "$0")/install.py"\n'
DISK = 4  # times the wheels' size, as install.py checks


def project_parser() -> Parser:
    parser = Parser(
        prog="stack cdsw-project",
        description="Write a project for sessions of Cloudera Data Science Workbench that installs a stack without an image of its own.",
        allow_abbrev=False,
    )
    parser.add_argument("name", metavar="NAME", help="a stack; engines have Python 2.7 and 3.6")
    parser.add_argument("directory", metavar="DIR", type=Path, help="a directory that is new, empty, or such a project")
    parser.add_argument(
        "--mirror",
        required=True,
        metavar="URL",
        help="the mirror as sessions reach it: http://mirror01.example.com:8900",
    )
    parser.add_argument("--python", help="one of the stack's Pythons; the preferred one by default")
    parser.add_argument(
        "--ca", default="", metavar="FILE", help="CA file in sessions for a mirror with https, such as the site's own"
    )
    parser.add_stacks()
    return parser


def command(arguments: Sequence[str]) -> int:
    options = project_parser().parse_args(list(arguments))
    if options.stacks:
        add_directory(options.stacks)
    mirror = str(options.mirror).rstrip("/")
    if not HTTP.fullmatch(mirror):
        raise Misuse(
            "--mirror must be an address such as http://mirror01.example.com:8900, without user and password, but is not."
        )
    stack = load_stack(options.name)
    lock = stack.lock(options.python)
    unusable = cdsw.session_problem(stack, lock.python)
    if unusable:
        raise Misuse(f"{unusable.rstrip('.')}. Nothing was written.")
    write(stack, lock, options.directory, mirror, options.ca)
    print(f"{options.directory} is a project for {stack.name} on Python {lock.python}. Its README.md names the steps.")
    return 0


def write(stack: Stack, lock: Lock, directory: Path, mirror: str, ca: str = "") -> None:
    """The project's files; a directory with other files is refused."""
    if directory.exists() and not directory.is_dir():
        raise Misuse(f"{directory} must be a directory, but is a file.")
    if directory.is_dir() and any(directory.iterdir()) and not (directory / MARK).is_file():
        raise Misuse(f"{directory} must be new, empty or such a project, but has other files. Nothing was written.")
    try:
        (directory / "data").mkdir(parents=True, exist_ok=True)
        for name in FILES:
            shutil.copyfile(EXAMPLES / name, directory / name.partition("/")[2])
        shutil.copyfile(host_code.DIRECTORY / "source_wheels.py", directory / "source_wheels.py")
        for name, text in texts(stack, lock, mirror, ca).items():
            (directory / name).write_text(text, encoding="utf-8")
        (directory / "cdsw-build.sh").chmod(0o755)
    except OSError as error:
        raise Misuse(f"{directory} must be writable, but is not: {error.strerror}.") from error


def texts(stack: Stack, lock: Lock, mirror: str, ca: str) -> dict[str, str]:
    """The files that depend on the stack, by name."""
    parts = sections(lock)
    content = {
        "stack": stack.name,
        "digest": lock.digest,
        "python": lock.python,
        "tensorflow": stack.data["tensorflow"],
        "glibc": stack.data.get("glibc_min", ""),
        "mirror": mirror,
        "ca": ca,
        "megabytes": parts.megabytes,
        "imports": [name for name in ("tensorflow", "keras") if name in lock.components],
        "sources": [download for download in parts.downloads if not source_wheels.is_wheel(download["file"])],
    }
    files = {
        "cdsw-build.sh": BUILD % lock.python,
        MARK: json.dumps(content, indent=2) + "\n",
        **parts.requirements(f"{mirror}/wheels"),
    }
    readme = (EXAMPLES / "cdsw" / "project.md").read_text(encoding="utf-8")
    words = {
        "STACK": stack.name,
        "DESCRIPTION": stack.data["description"] + ".",
        "PYTHON": lock.python,
        "MIRROR": mirror,
    }
    words["DISK"] = str(parts.megabytes * DISK)
    return {**files, "README.md": re.sub(r"@([A-Z]+)@", lambda match: words[match[1]], readme)}
