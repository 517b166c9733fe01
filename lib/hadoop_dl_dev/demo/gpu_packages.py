"""Fixture packages of the GPU layer: NVIDIA's file names, versions and dependencies without NVIDIA's files.

`python -m hadoop_dl_dev.demo.gpu_packages el9` builds a signed repository for the stand-in el9, and a fixture .run file, and
prints the directory. Specs and the list of versions are in demo/gpu.
"""

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from hadoop_dl_dev.demo import module_streams, signed_packages
from hadoop_dl_dev.demo.images import DATA
from hadoop_dl_dev.demo.shell import DemoError, print_path, run

SOURCE = DATA / "gpu"


def builds(listed: dict[str, Any], system: str) -> list[tuple[str, dict[str, str]]]:
    """Every run of rpmbuild for a system: the spec's name and its macros."""
    own = listed[system]
    common = {"el": own["el"], "dist": own["dist"]}
    kernels = [macros_of(kernel) for kernel in own["kernels"]]
    # A precompiled module's package carries the kernel's build, without .el9_4, in its name; it is for the newest kernel.
    newest = {**kernels[-1], "kbuild": kernels[-1]["krel"].split(".el")[0]}
    runs = [("stand-in-base", common), ("tools", common), ("dependencies", common)]
    runs += [("kernel", {**common, **kernel}) for kernel in [*kernels, macros_of(own["kernel_newer"])]]
    runs += [(own["driver_spec"], {**common, **newest, "driver": version}) for version in own["drivers"]]
    runs += [("cuda-toolkit", {**common, **toolkit}) for toolkit in listed["cuda"]]
    runs += [("libcudnn", {**common, **library}) for library in listed["cudnn"]]
    runs += [("libnccl", {**common, **library}) for library in listed["nccl"]]
    runs += [("datacenter-gpu-manager", {**common, "dcgm": own["dcgm"]})] if "dcgm" in own else []
    return runs


def macros_of(kernel: str) -> dict[str, str]:
    return dict(zip(("kver", "krel"), kernel.split("-", 1), strict=True))


def ensure(system: str) -> Path:
    """The repository's directory for a system, made again when a fixture changed."""
    listed = yaml.safe_load((SOURCE / "packages.yml").read_text(encoding="utf-8"))
    if system not in listed or "kernels" not in listed[system]:
        raise DemoError(
            f"Fixture packages exist for el7, el8 and el9, but {system!r} is requested. See demo/gpu/packages.yml."
        )
    sources = [*SOURCE.rglob("*"), Path(__file__), Path(str(module_streams.__file__))]
    files = [path for path in sources if path.is_file()]
    return signed_packages.made_once(f"gpu-packages-{system}", files, partial(fill, system, listed))


def fill(system: str, listed: dict[str, Any], top: Path, repository: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda job: build(top, repository, *job), enumerate(builds(listed, system))))
    signed_packages.publish(repository)
    if listed[system]["el"] != "7":
        module_streams.add(repository)
    write_runfiles(repository, listed[system]["drivers"])


def build(directory: Path, repository: Path, number: int, job: tuple[str, dict[str, str]]) -> None:
    spec, macros = job
    top, files = directory / f"build-{number}", str(SOURCE / "files")
    signed_packages.build(SOURCE / "specs" / f"{spec}.spec", top, repository, {**macros, "files_dir": files})


def write_runfiles(repository: Path, versions: list[str]) -> None:
    """Self-extracting files like NVIDIA's: a shell script, a marker line, and an archive."""
    for version in versions:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            for name in ("elf.py", "nvidia-smi"):
                text = (SOURCE / "files" / name).read_text(encoding="utf-8").replace("@VERSION@", version)
                (root / name).write_text(text, encoding="utf-8")
            same = ("--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--mode=0755")
            run("tar", *same, "-cf", f"{root}/payload.tar", "-C", directory, "elf.py", "nvidia-smi")
            script = (SOURCE / "files" / "nvidia.run").read_bytes().replace(b"@VERSION@", version.encode())
            target = repository / f"NVIDIA-Linux-x86_64-{version}.run"
            target.write_bytes(script + (root / "payload.tar").read_bytes())
            target.chmod(0o755)


if __name__ == "__main__":
    sys.exit(print_path("gpu_packages", lambda: ensure(sys.argv[1]), "name el7, el8 or el9"))
