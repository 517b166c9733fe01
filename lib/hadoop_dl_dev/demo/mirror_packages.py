"""For the scenario mirror: `… repository SYSTEM` prints the directory of NVIDIA's packages as fixtures, `… programs` that of createrepo_c."""

import sys
from pathlib import Path

from hadoop_dl_dev.demo import debs, gpu_packages
from hadoop_dl_dev.demo.shell import DemoError, print_path


def make(arguments: list[str]) -> Path:
    if len(arguments) == 2 and arguments[0] == "repository":
        return gpu_packages.ensure(arguments[1])
    if arguments == ["programs"]:
        return debs.fetch("createrepo", "el9", ("createrepo-c",))
    raise DemoError(f"repository SYSTEM or programs is required, but it is {' '.join(arguments)!r}.")


if __name__ == "__main__":
    sys.exit(print_path("mirror_packages", lambda: make(sys.argv[1:]), "name repository SYSTEM or programs"))
