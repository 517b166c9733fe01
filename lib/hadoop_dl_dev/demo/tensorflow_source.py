"""A source tree of our own with TensorFlow's outer interface, as git repositories: what tests of the build clone, configure and compile.

demo/tensorflow has configure.py (TensorFlow's variables and questions), the target //tensorflow/tools/pip_package:build_pip_package, a library in C++
that is compiled with the flags that configure was given, and switches for HDFS and Kafka that end in the wheel. Commits are the same everywhere.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from hadoop_dl_dev.demo.images import CACHE, DATA, digest
from hadoop_dl_dev.demo.shell import DemoError, only_one, print_path

SOURCE = DATA / "tensorflow"
VERSIONS = ("1.6.0", "1.15.0", "2.1.0", "2.8.0")
ARCHIVE = "eigen-fixture.tar.gz"
ASKS_MORE = "1.15.99"  # its configure has a question that nobody answers
AUTHOR = {
    f"GIT_{who}_{key}": value
    for who in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "Fixture"), ("EMAIL", "fixture@example.com"), ("DATE", "2020-01-01T00:00:00Z"))
}


def git(directory: Path, *arguments: str) -> str:
    variables = {**os.environ, **AUTHOR, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    answer = subprocess.run(
        ["git", *arguments], cwd=directory, env=variables, capture_output=True, text=True, check=False
    )
    if answer.returncode != 0:
        raise DemoError(f"git {' '.join(arguments)} failed: {answer.stderr.strip()}")
    return answer.stdout.strip()


def archive() -> bytes:
    """What the sources fetch from the internet, with the same bytes everywhere."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as opened:
        for path in sorted(path for path in (SOURCE / "eigen").rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(str(path.relative_to(SOURCE / "eigen")))
            entry.size = path.stat().st_size
            opened.addfile(entry, io.BytesIO(path.read_bytes()))
    return gzip.compress(content.getvalue(), mtime=0)


def write_tree(version: str, directory: Path) -> None:
    """The files of one version."""
    shutil.copytree(SOURCE / "tree", directory)
    workspace = directory / "WORKSPACE"
    sha256 = hashlib.sha256(archive()).hexdigest()
    workspace.write_text(workspace.read_text(encoding="utf-8").replace("@EIGEN_SHA256@", sha256), encoding="utf-8")
    if not version.startswith("1."):
        shutil.copyfile(SOURCE / "tf2" / "__init__.py", directory / "tensorflow" / "__init__.py")
        shutil.rmtree(directory / "tensorflow" / "contrib" / "kafka")
        build = directory / "tensorflow" / "contrib" / "BUILD"
        build.write_text(
            'filegroup(name = "contrib_py", srcs = ["__init__.py"], visibility = ["//visibility:public"])\n'
        )
    if version == ASKS_MORE:
        configure = directory / "configure.py"
        row = 'FEATURES = (\n    ("TF_NEED_NOVELTY", "Novelty", True, "", "1.0", "3.0"),\n'
        configure.write_text(configure.read_text(encoding="utf-8").replace("FEATURES = (\n", row), encoding="utf-8")
    for path in (directory / "tensorflow").rglob("*.py"):
        path.write_text(path.read_text(encoding="utf-8").replace("@VERSION@", version), encoding="utf-8")


def make_bundle(version: str, directory: Path, target: Path) -> str:
    """A bundle with the tag of the version and a commit after it; the tag's commit."""
    write_tree(version, directory)
    git(directory, "init", "--quiet", "--initial-branch=master")
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message", f"TensorFlow {version}, a stand-in")
    git(directory, "tag", f"v{version}")
    commit = git(directory, "rev-parse", "HEAD")
    git(directory, "commit", "--quiet", "--allow-empty", "--message", "what came after the release")
    git(directory, "-c", "pack.threads=1", "bundle", "create", "--quiet", str(target), "--all")
    return commit


def ensure(cache: Path = CACHE) -> Path:
    """The directory with tensorflow-vVERSION.bundle the archive that they fetch, and sources.json (commit and sha256 of each), made again when the fixture changed."""
    files = sorted(path for path in [*SOURCE.rglob("*"), Path(__file__)] if path.is_file())
    wanted = digest(*(str(path.relative_to(DATA.parent)).encode() + path.read_bytes() for path in files))
    target = cache / f"tensorflow-{wanted}"
    with only_one(cache / "tensorflow.lock"):
        if target.exists():
            return target
        with tempfile.TemporaryDirectory(dir=cache) as directory:
            made = Path(directory) / "made"
            made.mkdir(mode=0o755)
            names = {version: f"tensorflow-v{version}.bundle" for version in (*VERSIONS, ASKS_MORE)}
            written: dict[str, dict[str, str]] = {}
            for version, name in names.items():
                commit = make_bundle(version, Path(directory) / version, made / name)
                written[version] = {"commit": commit, "sha256": hashlib.sha256((made / name).read_bytes()).hexdigest()}
            (made / ARCHIVE).write_bytes(archive())
            written[ARCHIVE] = {"sha256": hashlib.sha256(archive()).hexdigest()}
            (made / "sources.json").write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
            made.rename(target)
    return target


if __name__ == "__main__":
    sys.exit(print_path("tensorflow_source", ensure))
