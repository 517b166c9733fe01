"""Fixture packages of the GPU layer: NVIDIA's file names, versions and dependencies without NVIDIA's files.

`python -m hadoop_dl_dev.demo.gpu_packages el9` builds a signed repository for the stand-in el9, and a fixture .run file, and
prints the directory; `debian12` a repository of Debian's. Specs and the list of versions are in demo/gpu.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from hadoop_dl_dev.demo import gpu_debs
from hadoop_dl_dev.demo.fixtures import KEY_NAME, signing_key
from hadoop_dl_dev.demo.images import CACHE, DATA, digest
from hadoop_dl_dev.demo.shell import DemoError, print_path, run

SOURCE = DATA / "gpu"


def builds(listed: dict[str, Any], system: str) -> list[tuple[str, dict[str, str]]]:
    """Every run of rpmbuild for a system: the spec's name and its macros."""
    own = listed[system]
    common = {"el": own["el"], "dist": own["dist"]}
    kernels = [macros_of(kernel) for kernel in own["kernels"]]
    # A precompiled module's package carries the kernel's build, without .el9_4, in its name; it is for the newest kernel.
    newest = {**kernels[-1], "kbuild": kernels[-1]["krel"].split(".el")[0]}
    made = [("stand-in-base", common), ("tools", common), ("dependencies", common)]
    made += [("kernel", {**common, **kernel}) for kernel in [*kernels, macros_of(own["kernel_newer"])]]
    made += [(own["driver_spec"], {**common, **newest, "driver": version}) for version in own["drivers"]]
    made += [("cuda-toolkit", {**common, **toolkit}) for toolkit in listed["cuda"]]
    made += [("libcudnn", {**common, **library}) for library in listed["cudnn"]]
    made += [("libnccl", {**common, **library}) for library in listed["nccl"]]
    return made


def macros_of(kernel: str) -> dict[str, str]:
    return dict(zip(("kver", "krel"), kernel.split("-", 1), strict=True))


def ensure(system: str, cache: Path = CACHE) -> Path:
    """The repository's directory for a system, made again when a fixture changed."""
    listed = yaml.safe_load((SOURCE / "packages.yml").read_text(encoding="utf-8"))
    if system not in listed or "kernels" not in listed[system]:
        raise DemoError(
            f"Fixture packages exist for el7, el9 and debian12, but {system!r} is requested. See demo/gpu/packages.yml."
        )
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "gpu-packages.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # scenarios run side by side; the second one takes what the first one made
        return make(system, listed, cache)


def make(system: str, listed: dict[str, Any], cache: Path) -> Path:
    target = cache / f"gpu-packages-{system}"
    programs = [Path(__file__), Path(gpu_debs.__file__)]
    files = sorted(path for path in [*SOURCE.rglob("*"), *programs] if path.is_file())
    wanted = digest(*(path.name.encode() + path.read_bytes() for path in files))
    stamp = target / ".digest"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return target
    with tempfile.TemporaryDirectory(dir=cache) as directory:
        made = Path(directory) / "made"
        made.mkdir(mode=0o755)
        home = signing_key(cache / "gpg")
        if "dist" in listed[system]:
            make_rpms(system, listed, Path(directory), made, home)
        else:
            gpu_debs.make(SOURCE, listed[system], Path(directory), made, home)
        write_keys(made, home)
        (made / ".digest").write_text(wanted, encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)
    return target


def make_rpms(system: str, listed: dict[str, Any], directory: Path, made: Path, home: Path) -> None:
    jobs = [(*job, directory / f"build-{number}", made) for number, job in enumerate(builds(listed, system))]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda job: build(*job), jobs))
    sign(made, home)
    run("createrepo_c", "--quiet", str(made))
    write_runfiles(made, listed[system]["drivers"])


def build(spec: str, macros: dict[str, str], top: Path, made: Path) -> None:
    options = {
        **macros,
        "files_dir": str(SOURCE / "files"),
        "_topdir": str(top),
        "_rpmdir": str(made),
        "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
        "_binary_payload": "w1.gzdio",  # EL7's rpm reads gzip
        "_build_id_links": "none",
        "__os_install_post": "%{nil}",
        "debug_package": "%{nil}",
    }
    defines = [word for key, value in options.items() for word in ("--define", f"{key} {value}")]
    run(
        "rpmbuild",
        "-bb",
        "--quiet",
        "--noclean",
        "--target",
        "x86_64",
        *defines,
        str(SOURCE / "specs" / f"{spec}.spec"),
    )


def sign(made: Path, home: Path) -> None:
    environment = {**os.environ, "GNUPGHOME": str(home)}
    packages = sorted(str(path) for path in made.glob("*.rpm"))
    run(
        "rpmsign",
        "--define",
        f"_gpg_name {KEY_NAME}",
        "--define",
        "__gpg /usr/bin/gpg",
        "--addsign",
        *packages,
        env=environment,
    )


def write_keys(made: Path, home: Path) -> None:
    exported = run("gpg", "--homedir", str(home), "--armor", "--export", KEY_NAME).stdout
    (made / "RPM-GPG-KEY-fixtures").write_text(exported, encoding="utf-8")
    other = signing_key(home.with_name("gpg-other"))  # a key that signed nothing here
    exported = run("gpg", "--homedir", str(other), "--armor", "--export", KEY_NAME).stdout
    (made / "RPM-GPG-KEY-other").write_text(exported, encoding="utf-8")


def write_runfiles(made: Path, versions: list[str]) -> None:
    """Self-extracting files like NVIDIA's: a shell script, a marker line, and an archive."""
    for version in versions:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            for name in ("elf.py", "nvidia-smi"):
                text = (SOURCE / "files" / name).read_text(encoding="utf-8").replace("@VERSION@", version)
                (root / name).write_text(text, encoding="utf-8")
            run(
                "tar",
                "--sort=name",
                "--mtime=@0",
                "--owner=0",
                "--group=0",
                "--mode=0755",
                "-cf",
                f"{root}/payload.tar",
                "-C",
                directory,
                "elf.py",
                "nvidia-smi",
            )
            script = (SOURCE / "files" / "nvidia.run").read_bytes().replace(b"@VERSION@", version.encode())
            target = made / f"NVIDIA-Linux-x86_64-{version}.run"
            target.write_bytes(script + (root / "payload.tar").read_bytes())
            target.chmod(0o755)


if __name__ == "__main__":
    sys.exit(print_path("gpu_packages", lambda: ensure(sys.argv[1]), "name el7, el9 or debian12"))
