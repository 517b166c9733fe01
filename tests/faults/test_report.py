"""scripts/report on a real cluster: its exit status, and what it says of a host as planned, one that drifted, and one that is gone."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import INVENTORY, REPO, Cluster

DRIFTED = "/opt/deeplearning/current/.deeplearning/client/hadoop-env.sh"
Report = tuple[int, dict[str, Any], Path]


def report(directory: Path, *options: str) -> Report:
    """The exit status, report.json, and the directory of the report."""
    command = ["scripts/report", "-i", str(INVENTORY), "--directory", str(directory), *options]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, timeout=600, check=False)
    print(done.stdout + done.stderr)
    return done.returncode, json.loads((directory / "report.json").read_text(encoding="utf-8")), directory


def states(found: dict[str, Any]) -> dict[str, str]:
    return {row["host"]: row["state"] for row in found["hosts"]}


def seconds(moment: str) -> float:
    """Of a time of the report, such as 2026-11-22T13:00:00Z."""
    return time.mktime(time.strptime(moment, "%Y-%m-%dT%H:%M:%SZ")) - time.timezone


@pytest.fixture(scope="module")
def as_planned(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report(tmp_path_factory.mktemp("report"))


def test_a_cluster_as_planned_is_status_0(cluster: Cluster, as_planned: Report) -> None:
    code, found, _ = as_planned
    assert code == 0
    assert set(states(found).values()) == {"as planned"}
    assert set(cluster.platform_hosts) <= set(states(found))


def test_the_times_are_those_of_the_hosts(cluster: Cluster, as_planned: Report) -> None:
    _, found, _ = as_planned
    for row in found["hosts"]:
        if row["host"] in cluster.platform_hosts:
            written = cluster.run(row["host"], "stat -c %Y /opt/deeplearning/state/verify.json")
            assert abs(seconds(row["changed"]) - max(map(float, cluster.run(row["host"], CHANGED).split()))) < 2
            assert seconds(row["verified"]) >= int(written) - 1  # or of a later playbooks/verify.yml
            assert seconds(row["verified"]) <= time.time()


CHANGED = (
    "find /opt/deeplearning/state -name '*.json' ! -name verify.json -printf '%Ts\\n'; "
    "find /opt/deeplearning/current -maxdepth 0 -printf '%Ts\\n'"
)


def test_every_form_has_every_host(as_planned: Report) -> None:
    _, found, directory = as_planned
    page, metrics = ((directory / name).read_text(encoding="utf-8") for name in ("report.html", "deeplearning.prom"))
    for name in states(found):
        assert f">{name}<" in page
        assert f'deeplearning_host_up{{host="{name}"}} 1' in metrics
    if shutil.which("promtool"):
        subprocess.run(["promtool", "check", "metrics"], input=metrics, text=True, check=True)


@pytest.fixture
def drifted(cluster: Cluster) -> Iterator[str]:
    """A host on which somebody edited what a role wrote."""
    cluster.run("data1", f"cp -a $(readlink -f {DRIFTED}) /root/before && echo '# edited' >> $(readlink -f {DRIFTED})")
    yield "data1"
    cluster.run("data1", f"cp -a /root/before $(readlink -f {DRIFTED}) && rm /root/before")


def test_a_host_that_drifted_is_status_3_and_names_the_file(cluster: Cluster, drifted: str, tmp_path: Path) -> None:
    code, found, directory = report(tmp_path)
    assert code == 3
    assert states(found)[drifted] == "drift"
    assert [name for name, state in states(found).items() if state != "as planned"] == [drifted]
    text = (directory / "report.txt").read_text(encoding="utf-8")
    assert f"{drifted}: hadoop_client: " in text
    assert "hadoop-env.sh was changed" in text
    assert f'deeplearning_host_drift{{host="{drifted}"}} 1' in (directory / "deeplearning.prom").read_text(
        encoding="utf-8"
    )


def test_a_host_that_is_gone_is_status_4_beside_one_that_drifted(
    cluster: Cluster, drifted: str, tmp_path: Path
) -> None:
    container = cluster.container("data2")
    subprocess.run(["docker", "pause", container], check=True)
    try:
        code, found, directory = report(tmp_path)
    finally:
        subprocess.run(["docker", "unpause", container], check=True)
        cluster.wait("data2", "true", 60)
    assert code == 4
    assert (states(found)["data2"], states(found)[drifted]) == ("unreachable", "drift")
    assert 'deeplearning_host_up{host="data2"} 0' in (directory / "deeplearning.prom").read_text(encoding="utf-8")


def test_it_is_as_planned_again(tmp_path: Path) -> None:
    assert report(tmp_path)[0] == 0
