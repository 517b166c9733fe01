"""Programs that stay on hosts: one file each, a launcher for the shell and behind it a zip archive that Python runs.

    PYTHONPATH=lib python3 -m hadoop_dl.data.programs DIRECTORY FILE

A program's directory (roles/gpu_check/files/gpu-check) has its name, __main__.py and a package; launcher.sh is the same for all.
The file is the same bytes on every controller: nothing is compressed, and no time of a file counts.
"""

import io
import stat
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from hadoop_dl.data import host_code

LAUNCHER = Path(__file__).with_name("launcher.sh")
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date in a zip archive


def directories(role: Path) -> list[Path]:
    """The directories of the programs that a role installs."""
    return sorted(path.parent for path in role.glob("files/*/__main__.py"))


def modules(directory: Path) -> dict[str, Path]:
    """The Python files of a program and its tables by their names in the archive."""
    sources = {"__main__": directory / "__main__.py"}
    for path in sorted(directory.glob("*/__init__.py")):
        sources |= host_code.package(path.parent)
    files = {
        name.replace(".", "/") + ("/__init__.py" if path.name == "__init__.py" else ".py"): path
        for name, path in sorted(host_code.complete(sources).items())
    }
    return files | {f"{path.parent.name}/{path.name}": path for path in sorted(directory.glob("*/*.json"))}


def pack(directory: Path) -> bytes:
    """The program as one file."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as target:
        for name, path in modules(directory).items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            target.writestr(entry, path.read_bytes())
    return LAUNCHER.read_bytes().replace(b"PROGRAM", directory.name.encode()) + archive.getvalue()


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 2:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    directory, file = (Path(argument) for argument in arguments)
    file.write_bytes(pack(directory))
    file.chmod(0o755)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
