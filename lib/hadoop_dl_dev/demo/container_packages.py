"""What the scenario container_runtime installs: Debian's Docker for a node, and a signed repository with fixtures of NVIDIA's runtimes.

`python -m hadoop_dl_dev.demo.container_packages` prints the repository's directory; `… docker el9` that of Docker's packages.
"""

import sys
from pathlib import Path

from hadoop_dl_dev.demo import debs, signed_packages
from hadoop_dl_dev.demo.images import DATA
from hadoop_dl_dev.demo.shell import print_path

SOURCE = DATA / "containers"
DOCKER = ("docker.io",)
TOOLKIT = "1.17.8"


def ensure() -> Path:
    """The repository, made again when a fixture changed."""
    return signed_packages.made_once("container-packages", [*SOURCE.iterdir(), Path(__file__)], fill)


def fill(top: Path, repository: Path) -> None:
    for spec in sorted(SOURCE.glob("*.spec")):
        signed_packages.build(spec, top / spec.stem, repository, {"files_dir": str(SOURCE), "toolkit": TOOLKIT})
    signed_packages.publish(repository)


def make(arguments: list[str]) -> Path:
    return debs.fetch("docker", arguments[1], DOCKER) if arguments[:1] == ["docker"] else ensure()


if __name__ == "__main__":
    sys.exit(print_path("container_packages", lambda: make(sys.argv[1:]), "name the image of Docker"))
