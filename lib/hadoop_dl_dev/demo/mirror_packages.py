"""For the scenario mirror: directories with what its nodes get.

`… repository SYSTEM` prints that of NVIDIA's packages as fixtures, `… programs` that of createrepo_c, and `… bundle` that of a signed bundle
with its public key and another one.
"""

import os
import sys
from pathlib import Path

from ansible.module_utils.hadoop_dl_host import mirror_bundle

from hadoop_dl_dev.demo import debs, gpu_packages, signed_packages
from hadoop_dl_dev.demo.shell import DemoError, print_path


def make(arguments: list[str]) -> Path:
    if len(arguments) == 2 and arguments[0] == "repository":
        return gpu_packages.ensure(arguments[1])
    if arguments == ["programs"]:
        return debs.fetch("createrepo", "el9", ("createrepo-c",))
    if arguments == ["bundle"]:
        programs = [Path(__file__), Path(mirror_bundle.__file__)]
        return signed_packages.made_once("mirror-bundle", programs, fill_bundle)
    raise DemoError(f"repository SYSTEM, programs or bundle is required, but it is {' '.join(arguments)!r}.")


def fill_bundle(root: Path, target: Path) -> None:
    """A bundle with one file."""
    signed_packages.write_keys(target)
    (root / "files").mkdir()
    (root / "files" / "carried").write_text("carried\n", encoding="utf-8")
    os.environ["GNUPGHOME"] = str(signed_packages.own_key())
    key = (target / "RPM-GPG-KEY-fixtures").read_text(encoding="utf-8")
    mirror_bundle.pack(str(target / "site.bundle"), str(root), ["files/carried"], key)


if __name__ == "__main__":
    sys.exit(print_path("mirror_packages", lambda: make(sys.argv[1:]), "name repository SYSTEM, programs or bundle"))
