"""A source tree of our own with TensorFlow's outer interface, as git repositories: what tests of the build clone, configure and compile.

demo/tensorflow has configure.py (TensorFlow's variables and questions), the target //tensorflow/tools/pip_package:build_pip_package, a library in C++
that is compiled with the flags that configure was given, and switches for HDFS (which it reads) and Kafka that end in the wheel. 2.8.0 also has the
target :wheel, TensorFlow's own from 2.17 on, whose bazel cannot be had from a package registry. Commits are the same everywhere.
"""

import gzip
import hashlib
import io
import json
import os
import shutil
import sys
import tarfile
from pathlib import Path

from hadoop_dl_dev.demo import signed_packages
from hadoop_dl_dev.demo.images import DATA
from hadoop_dl_dev.demo.shell import print_path, run

SOURCE = DATA / "tensorflow"
VERSIONS = ("1.6.0", "1.15.0", "2.1.0", "2.2.0", "2.8.0")
FETCHED = (
    "eigen",
    "rules_cc",
    "rules_java",
)  # what the sources fetch from the internet; the rules are what bazel 0.29 and later want
NO_HDFS = "2.6"  # from this line on HDFS is off unless a flag asks for it, as in TensorFlow's .bazelrc
HELD = "2.0.0"  # its build lasts as long as the host has the file HOLD, when all is compiled
HOLD = "/srv/hold"
# bazel writes down what it has done when 3 seconds have gone by since the last time, with the next thing that is done: what is compiled is safe before it waits.
HOLD_RULE = f"""
genrule(
    name = "compiled",
    srcs = ["//tensorflow/python:_pywrap_tensorflow_internal.so"],
    outs = ["compiled.txt"],
    cmd = "sleep 4; cksum $< > $@",
)

genrule(
    name = "hold",
    srcs = [":compiled"],
    outs = ["hold.txt"],
    cmd = "while [ -e {HOLD} ]; do sleep 0.2; done; cp $< $@",
)
"""
# Its library says with which -DHELD_AS it was built, and takes as much memory to compile as this file of the host wants: HUNGRY takes gigabytes within seconds.
HUNGRY_FILE = "/srv/hungry.h"
HELD_SOURCE = f"""
#if __has_include("{HUNGRY_FILE}")
#include "{HUNGRY_FILE}"
#endif
#define HELD_TEXT(name) #name
#define HELD_NAME(name) HELD_TEXT(name)
extern "C" const char* tf_held_as() {{ return HELD_NAME(HELD_AS); }}
"""
HUNGRY = """
template <int depth, long n> struct Hungry { static const long value = Hungry<depth - 1, 2 * n>::value + Hungry<depth - 1, 2 * n + 1>::value; };
template <long n> struct Hungry<0, n> { static const long value = n; };
static_assert(Hungry<24, 1>::value != 0, "");
"""
AUTHOR = {
    f"GIT_{who}_{key}": value
    for who in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "Fixture"), ("EMAIL", "fixture@example.com"), ("DATE", "2020-01-01T00:00:00Z"))
}


def git(directory: Path, *arguments: str) -> str:
    variables = {**os.environ, **AUTHOR, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return run("git", "-C", str(directory), *arguments, env=variables).stdout.strip()


def archive_name(name: str) -> str:
    return f"{name}-fixture.tar.gz"


def archive(name: str) -> bytes:
    """What the sources fetch from the internet, with the same bytes everywhere."""
    content, source = io.BytesIO(), SOURCE / name
    with tarfile.open(fileobj=content, mode="w") as opened:
        for path in sorted(path for path in source.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(str(path.relative_to(source)))
            entry.size = path.stat().st_size
            opened.addfile(entry, io.BytesIO(path.read_bytes()))
    return gzip.compress(content.getvalue(), mtime=0)


def replace(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def write_tree(version: str, directory: Path) -> None:
    """The files of one version."""
    shutil.copytree(SOURCE / "tree", directory)
    for name in FETCHED:
        replace(directory / "WORKSPACE", f"@{name.upper()}_SHA256@", hashlib.sha256(archive(name)).hexdigest())
    line = [int(part) for part in version.split(".")[:2]]
    if line >= [2, 0]:
        shutil.copyfile(SOURCE / "tf2" / "__init__.py", directory / "tensorflow" / "__init__.py")
        shutil.rmtree(directory / "tensorflow" / "contrib" / "kafka")
        replace(directory / "tensorflow" / "python" / "BUILD", '["-DTENSORFLOW_WITH_KAFKA"]', "[]")
        build = directory / "tensorflow" / "contrib" / "BUILD"
        build.write_text(
            'filegroup(name = "contrib_py", srcs = ["__init__.py"], visibility = ["//visibility:public"])\n'
        )
    if line >= [int(part) for part in NO_HDFS.split(".")]:
        replace(directory / ".bazelrc", "try-import", "build --define=no_hdfs_support=true\ntry-import")
        shutil.copytree(SOURCE / "wheel", directory / "tensorflow" / "tools" / "pip_package", dirs_exist_ok=True)
    if version == HELD:
        build = directory / "tensorflow" / "tools" / "pip_package" / "BUILD"
        replace(build, "data = [", 'data = [\n        ":hold",')
        build.write_text(build.read_text(encoding="utf-8") + HOLD_RULE, encoding="utf-8")
        product = directory / "tensorflow" / "core" / "matmul.cc"
        product.write_text(product.read_text(encoding="utf-8") + HELD_SOURCE, encoding="utf-8")
    for path in (directory / "tensorflow").rglob("*.py"):
        replace(path, "@VERSION@", version)


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


def ensure() -> Path:
    """The directory with tensorflow-vVERSION.bundle, the archives that they fetch, and sources.json (commit and sha256 of each), made again when the fixture changed."""
    files = [path for path in [*SOURCE.rglob("*"), Path(__file__)] if path.is_file()]
    return signed_packages.made_once("tensorflow", files, fill)


def fill(top: Path, target: Path) -> None:
    sources: dict[str, dict[str, str]] = {}
    for version in (*VERSIONS, HELD):
        bundle = target / f"tensorflow-v{version}.bundle"
        commit = make_bundle(version, top / version, bundle)
        sources[version] = {"commit": commit, "sha256": hashlib.sha256(bundle.read_bytes()).hexdigest()}
    for part in FETCHED:
        name, content = archive_name(part), archive(part)
        (target / name).write_bytes(content)
        sources[name] = {"sha256": hashlib.sha256(content).hexdigest()}
    (target / "sources.json").write_text(json.dumps(sources, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(print_path("tensorflow_source", ensure))
