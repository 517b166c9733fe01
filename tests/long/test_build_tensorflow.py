"""playbooks/build_tensorflow.yml and site.yml on one node: real bazel builds a stand-in of TensorFlow's sources, the wheel is published, pinned and installed.

The node is mirror, build host and data node at once. bazel 0.26.1 comes from npm, the sources are demo/tensorflow.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hadoop_dl.data.stacks import load_stack
from hadoop_dl_dev.demo import bazel_files, nodes, tensorflow_source
from hadoop_dl_dev.demo.shell import run

REPOSITORY = Path(__file__).resolve().parents[2]
NODE, STACK = "build-el7", "ours-cpu-py27-el7"
BASE = "tf1.15-cpu-py27-el7"
PACKAGES = ("numpy", "six", "kafka-python")
BAZEL = "bazel-0.26.1-linux-x86_64"
BAZEL_SHA256 = "6c50e142a0a405d3d8598050d6c1b3920c8cdb82a7ffca6fc067cb474275148f"
SERVER = "http://127.0.0.1:8001"
NONE = dict.fromkeys(("nvidia_driver_version", "cuda_versions", "cudnn_versions", "nccl_versions"), "none")


def write_stack(directory: Path, commit: str) -> None:
    """The smallest stack that is built: TensorFlow 1.15's, with nothing but what the stand-in imports."""
    base = load_stack(BASE)
    left_out = ("keras", "tensorflowonspark", "pyspark", "files", "java")
    data = {key: value for key, value in base.data.items() if key not in left_out}
    data |= {"name": STACK, "tensorflow_source": "built", "tensorflow_package": "tensorflow", "hdfs": False}
    data |= {"bazel": "0.26.1", "tensorflow_commit": commit}
    (directory / "locks").mkdir(parents=True)
    (directory / f"{STACK}.yml").write_text(yaml.safe_dump(data), encoding="utf-8")
    lock = base.lock("2.7")
    section = [entry.line() for entry in lock.entries if entry.project in PACKAGES]
    text = f"{lock.component('pip')}\n# component: tensorflow\n" + "\n".join(section) + "\n"
    (directory / "locks" / f"{STACK}.txt").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The inventory of a site whose one host serves bazel and the sources to itself."""
    directory = tmp_path_factory.mktemp("site")
    sources, bazel = tensorflow_source.ensure(), bazel_files.ensure()
    compiler = bazel_files.compiler("el7", bazel_files.BUILDING)
    digests = json.loads((sources / "sources.json").read_text(encoding="utf-8"))
    written, archive = digests["1.15.0"], tensorflow_source.ARCHIVE
    write_stack(directory / "stacks", written["commit"])
    nodes.remove(NODE)
    nodes.start(NODE, "el7", nodes.options_of(NODE))
    try:
        for path, target in ((compiler, "compiler"), (sources, "site")):
            run("docker", "cp", str(path), f"{NODE}:/srv/{target}")
        run("docker", "cp", str(bazel / BAZEL), f"{NODE}:/srv/site/{BAZEL}")
        nodes.execute(NODE, "sh", "-c", "dpkg --install --force-unsafe-io /srv/compiler/*.deb > /dev/null")
        serve = ["systemd-run", "--unit", "site", "/usr/bin/python3", "-m", "http.server", "8001", "--directory"]
        nodes.execute(NODE, *serve, "/srv/site")
        bundle = "tensorflow-v1.15.0.bundle"
        variables = {
            "ansible_connection": "community.docker.docker",
            "ansible_become": False,
            "ansible_python_interpreter": "/usr/bin/python2.7",
            "deeplearning_request": STACK,
            "mirror_mode": "push",
            "mirror_url": "http://127.0.0.1:8900",
            "gpu_count": 0,
            "bazel_files": {"0.26.1": {"file": f"{SERVER}/{BAZEL}", "sha256": BAZEL_SHA256}},
            "tensorflow_build_source": {"file": f"{SERVER}/{bundle}", "sha256": written["sha256"]},
            "tensorflow_build_archives": {archive: {"file": f"{SERVER}/{archive}", **digests[archive]}},
            "tensorflow_build_disk_min_mb": 1000,
            "tensorflow_build_memory_min_mb": 1000,
            **NONE,
        }
        groups = {group: {"hosts": {NODE: {}}} for group in ("mirror_host", "build_hosts", "data_nodes")}
        (directory / "hosts.yml").write_text(
            yaml.safe_dump({"all": {"children": groups, "vars": variables}}), encoding="utf-8"
        )
        yield directory
    finally:
        nodes.remove(NODE)


def play(site: Path, playbook: str, *arguments: str) -> tuple[int, str]:
    answer = subprocess.run(
        [str(Path(sys.executable).parent / "ansible-playbook"), "-i", str(site), playbook, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1200,
        check=False,
    )
    return answer.returncode, answer.stdout


def record(site: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((site / "stacks/built" / f"{STACK}.json").read_text(encoding="utf-8"))
    return found


def test_before_the_build_site_yml_names_the_command(site: Path) -> None:
    code, said = play(site, "playbooks/plan.yml")
    assert code != 0
    assert "requires the wheel of TensorFlow 1.15.0 that this site builds" in " ".join(said.split())


def test_the_playbook_builds_and_pins_the_wheel(site: Path) -> None:
    code, said = play(site, "playbooks/build_tensorflow.yml")
    assert code == 0, said[-6000:]
    assert "tensorflow_build  none" in said
    assert record(site)["stack"] == STACK
    assert record(site)["cpu_features"]
    wheel = record(site)["wheel"]
    assert (
        nodes.execute(NODE, "sha256sum", f"/srv/deeplearning-mirror/wheels/{wheel['name']}").split()[0]
        == wheel["sha256"]
    )


def test_a_lost_record_is_written_again_and_nothing_is_built(site: Path) -> None:
    before = record(site)
    (site / "stacks/built" / f"{STACK}.json").unlink()
    code, said = play(site, "playbooks/build_tensorflow.yml")
    assert code == 0, said[-6000:]
    assert record(site) == before


def test_site_yml_installs_the_wheel_where_it_fits(site: Path) -> None:
    code, said = play(site, "site.yml", "--skip-tags", "verify")
    assert code == 0, said[-6000:]
    program = "import tensorflow as tf; a = tf.constant([[2.0, 1.0]]); b = tf.constant([[3.0], [4.0]]); print(tf.Session().run(tf.matmul(a, b)).tolist())"
    python = "/opt/deeplearning/current/bin/python"
    assert nodes.execute(NODE, python, "-c", program).strip() == "[[10.0]]"


def test_then_a_build_has_nothing_to_do(site: Path) -> None:
    before = record(site)
    code, said = play(site, "playbooks/build_tensorflow.yml")
    assert code == 0, said[-6000:]
    assert "nothing to do" in said
    assert record(site) == before


def test_the_suite_verifies_it_and_shows_what_it_is_made_of(site: Path) -> None:
    code, said = play(site, "playbooks/verify.yml")
    assert code == 0, said[-6000:]
    shown = " ".join(said.split())
    assert f"{record(site)['wheel']['name']}, built {record(site)['built']} on Red Hat" in shown
    assert f"from v1.15.0 ({record(site)['commit'][:12]}), CPU, " in shown


def test_where_it_does_not_fit_nothing_changes(site: Path) -> None:
    path = site / "stacks/built" / f"{STACK}.json"
    before = path.read_text(encoding="utf-8")
    changed = {**record(site), "symbols": {"GLIBCXX": "3.4.99"}}
    path.write_text(json.dumps(changed), encoding="utf-8")
    try:
        code, said = play(site, "site.yml")
    finally:
        path.write_text(before, encoding="utf-8")
    text = " ".join(said.split())
    assert code != 0
    assert "requires GLIBCXX_3.4.99, but the host has GLIBCXX_3.4." in text
    assert "no host was changed" in text
