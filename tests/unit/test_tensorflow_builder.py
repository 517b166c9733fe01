"""A whole build by the module's own process, with sources of TensorFlow's interface and a program in bazel's place that is as slow as a test wants."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import host_modules
import pytest
import waiting
from built_wheel import CHECKER, GIVEN, INFO, KNOWN, TENSORFLOW
from python_files import write_script

from hadoop_dl.data import tensorflow_build as build
from hadoop_dl_dev.demo import tensorflow_source

KEY = "3f" * 32
LIMIT = 60  # seconds for a build that takes one
# What bazel does in these tests: it notes its starts, starts a compiler as bazel does (process-wrapper, which gives it a session of its own) where the file
# `compiling` is there, waits while the file `slow` is there, and leaves the program that makes the wheel.
BAZEL = """
case " $* " in *" version "*) echo "Build label: 0.26.1"; exit ;; esac
echo $$ >> {root}/starts
cat /proc/self/oom_score_adj > {root}/first_to_end
echo "[1 / 2] Compiling matmul.cc"
test ! -e {root}/compiling || sh -c 'setsid sh -c "echo \\$\\$ >> {root}/compilers; exec sleep 600" & wait' &
while [ -e {root}/slow ]; do sleep 0.05; done
mkdir -p bazel-bin/tensorflow/tools/pip_package
printf '#!/bin/sh\\nexec {python} {root}/make_wheel.py "$1"\\n' > bazel-bin/tensorflow/tools/pip_package/build_pip_package
chmod 755 bazel-bin/tensorflow/tools/pip_package/build_pip_package
"""
MAKE_WHEEL = """
import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + "/tensorflow-1.15.0-cp27-cp27mu-linux_x86_64.whl", "w") as wheel:
    wheel.write({source!r}, "tensorflow/__init__.py")
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    """The directory of the builds, with sources as a bundle."""
    root = tmp_path / "root"
    (root / "home").mkdir(parents=True)
    write_script(root / "bin/bazel", BAZEL.format(root=root, python=sys.executable))
    (root / "tensorflow.py").write_text(TENSORFLOW.format(error=KNOWN, first="7.0"), encoding="utf-8")
    (root / "make_wheel.py").write_text(MAKE_WHEEL.format(source=str(root / "tensorflow.py")), encoding="utf-8")
    yield root
    for name in ("slow", "compiling"):
        (root / name).unlink(missing_ok=True)
    if (root / "compilers").exists():
        subprocess.run(["kill", *(root / "compilers").read_text().split()], stderr=subprocess.DEVNULL, check=False)


def spec(root: Path) -> dict[str, Any]:
    sources = tensorflow_source.ensure()
    commit = json.loads((sources / "sources.json").read_text(encoding="utf-8"))["1.15.0"]["commit"]
    answers = build.configure_answers({**GIVEN, "python": sys.executable}, INFO, build.profile("1.15.0"))
    return {
        "version": "1.15.0",
        "tag": "v1.15.0",
        "commit": commit,
        "bundle": str(sources / "tensorflow-v1.15.0.bundle"),
        "bazel": str(root / "bin/bazel"),
        "python": sys.executable,
        "path": ["/usr/bin", "/bin"],
        "home": str(root / "home"),
        "user": os.geteuid(),
        "answers": answers,
        "flags": [],
        "jobs": 4,
        "timeout": 60,
        "target": "//tensorflow/tools/pip_package:build_pip_package",
        "package": ["bazel-bin/tensorflow/tools/pip_package/build_pip_package"],
        "checker": str(CHECKER),
        "check": {"version": "1.15.0", "hdfs": True},
        "provenance": {"version": "1.15.0", "commit": commit},
    }


def start(root: Path, **changes: Any) -> dict[str, Any]:
    return host_modules.run("tensorflow_build", root=str(root), key=KEY, spec={**spec(root), **changes})


def until(root: Path, *states: str, step: str = "") -> dict[str, Any]:
    """The answer when the build is in one of these states, and at this step."""
    end = time.monotonic() + LIMIT
    while True:
        result = host_modules.run("tensorflow_build", root=str(root), key=KEY, state="asked")
        if result["build_state"] in states and step in ("", result["step"]):
            return result
        assert time.monotonic() < end, result
        time.sleep(0.05)


def bazels(root: Path) -> list[int]:
    """The processes of bazel, one for each start."""
    return [int(pid) for pid in (root / "starts").read_text(encoding="utf-8").split()]


def test_a_build_publishes_the_wheel_with_its_provenance_and_is_not_repeated(site):
    assert start(site)["changed"]
    result = until(site, "done", "failed", "stopped")
    assert result["build_state"] == "done", result
    wheel = result["provenance"]["wheel"]
    assert wheel["name"] == "tensorflow-1.15.0-03f3f3f3f3f3f-cp27-cp27mu-linux_x86_64.whl"
    assert (site / "published" / KEY / wheel["name"]).stat().st_size == wheel["size"]
    assert result["provenance"]["check"]["hdfs"] is True
    # Without memory the kernel ends a build before the host's services, of which a data node has some.
    assert (site / "first_to_end").read_text(encoding="utf-8") == "500\n"
    second_result = start(site)
    assert (second_result["changed"], second_result["build_state"], len(bazels(site))) == (False, "done", 1)


def test_two_starts_at_once_are_one_build(site):
    (site / "slow").touch()
    processes = [host_modules.start("tensorflow_build", root=str(site), key=KEY, spec=spec(site)) for _ in range(3)]
    answers = [host_modules.answer(process) for process in processes]
    assert sorted(answer["changed"] for answer in answers) == [False, False, True]
    (site / "slow").unlink()
    until(site, "done")
    assert len(bazels(site)) == 1


def runs(pid: int) -> bool:
    """Not a zombie: that has ended, whenever the system takes note of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def compiling(site: Path) -> int:
    """Start a build that does not end, and return its compiler's process."""
    for name in ("slow", "compiling"):
        (site / name).touch()
    start(site)
    waiting.until(lambda: until(site, "running")["actions"])
    waiting.until((site / "compilers").exists)
    return int((site / "compilers").read_text(encoding="utf-8").split()[-1])


def test_a_bazel_that_the_kernel_kills_takes_its_compilers_with_it_and_names_the_jobs(site):
    """They would hold the memory that the next try, with fewer jobs, needs."""
    pid = compiling(site)
    os.kill(bazels(site)[-1], signal.SIGKILL)
    assert "Lower tensorflow_build_jobs (now 4)" in until(site, "failed", step="build")["message"]
    assert not list((site / "published").iterdir())
    assert not runs(pid)


def test_a_build_that_is_killed_is_stopped_with_its_bazel_and_resumed_without_its_compilers(site):
    pid, bazel = compiling(site), bazels(site)[-1]
    os.kill(json.loads((site / "running.json").read_text(encoding="utf-8"))["pid"], signal.SIGKILL)
    until(site, "stopped", step="build")
    waiting.until(lambda: not Path(f"/proc/{bazel}").exists())
    assert runs(pid)  # nobody is there who could end it
    for name in ("slow", "compiling"):
        (site / name).unlink()
    assert start(site)["changed"]
    until(site, "done")
    assert len(bazels(site)) == 2
    assert not runs(pid)


@pytest.mark.parametrize(
    ("changes", "step", "words"),
    [
        ({"bundle": "/nowhere.bundle"}, "source", "/nowhere.bundle must have the tag v1.15.0"),
        ({"commit": "0" * 40}, "source", "The tag v1.15.0 must be the commit 0000"),
        ({"answers": {}}, "configure", "none answers: Please specify the location of python; Please input the desired"),
        ({"check": {"kafka": True}}, "check", "kafka must be true but is false"),
    ],
)
def test_nothing_is_published_where_something_is_wrong(site, changes, step, words):
    start(site, **changes)
    assert words in until(site, "failed", step=step)["message"]
    assert not list((site / "published").iterdir())
