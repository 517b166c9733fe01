"""The role node_maintenance with a real ResourceManager, two real NodeManagers and jobs on the host that leaves."""

import json
import os
import re
import signal
from collections.abc import Iterator

import pytest
import yaml
from drain_operator import NOTHING, REPOSITORY, Operator
from waiting import until
from yarn_processes import NAMES, NODES, Cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("yarn")).running() as cluster:
        yield cluster


@pytest.fixture
def operator(cluster: Cluster) -> Operator:
    return Operator(cluster)


def leaves(cluster: Cluster, host: str) -> None:
    until(lambda: cluster.states()[host] == "DECOMMISSIONING", 240, f"{host} must leave")


def test_a_job_ends_as_it_should_before_its_host_is_out(cluster, operator):
    job = cluster.submit("nightly training")
    host = job.host
    assert NOTHING not in operator.runs("drained", host, 120, "--check")
    assert operator.is_as_before()
    drain = operator.starts("drained", host)
    leaves(cluster, host)
    assert operator.record.stat().st_mode & 0o777 == 0o600
    second_job = cluster.submit("started meanwhile")
    assert second_job.host != host
    assert job.state == "RUNNING"
    job.finish()
    output = operator.ends(drain)
    pattern = rf"^{host} waits for 1 container of {job.application} \(dr\.who: nightly training\); (\d+ s|\d min) left$"
    assert re.search(pattern, output, re.MULTILINE), output
    assert cluster.states() == {host: "DECOMMISSIONED", second_job.host: "RUNNING"}
    assert cluster.excluded.read_bytes() == operator.before + NODES[host].encode() + b"\n"
    assert NOTHING in operator.runs("drained", host)
    assert NOTHING not in operator.runs("running", host)
    assert operator.is_as_before()
    assert NOTHING in operator.runs("running", host)
    second_job.finish()


def test_at_the_limit_yarn_ends_what_still_runs_and_the_run_names_it(cluster, operator):
    job = cluster.submit("endless")
    host = job.host
    output = " ".join(operator.runs("drained", host, 15).split())
    assert f"{host}: YARN ended what still ran after 15 s" in output
    assert f"{job.application} (dr.who: endless)" in output
    assert cluster.states()[host] == "DECOMMISSIONED"
    until(lambda: job.state == "FAILED", 30, "it must have ended")
    operator.runs("running", host)
    assert operator.is_as_before()


@pytest.mark.parametrize("then", ["drained", "running"])
def test_a_killed_drain_is_resumed_or_undone(cluster, operator, then):
    job = cluster.submit("long")
    host = job.host
    drain = operator.starts("drained", host)
    leaves(cluster, host)
    os.killpg(drain.pid, signal.SIGKILL)
    drain.wait()
    assert operator.record.exists()
    if then == "drained":
        job.finish()
        operator.runs("drained", host)
        assert cluster.states()[host] == "DECOMMISSIONED"
    operator.runs("running", host)
    assert operator.is_as_before()
    if then == "running":
        assert job.state == "RUNNING"  # the host takes containers again, and nothing on it ended
        job.finish()


def test_a_host_that_does_not_come_back_stays_recorded_until_it_does(cluster, operator):
    operator.runs("drained", "data2")
    failing_start = ("-e", "node_maintenance_start_command=false")
    process = operator.starts("running", "data2", 120, *failing_start)
    output = " ".join(process.communicate(timeout=600)[0].split())
    assert process.returncode != 0
    assert "data2 stays out of YARN. The same command resumes" in output
    assert operator.record.exists()
    operator.runs("running", "data2")
    assert operator.is_as_before()


def test_the_last_host_does_not_leave(cluster, operator):
    operator.runs("drained", "data1")
    process = operator.starts("drained", "data2")
    output = " ".join(process.communicate(timeout=600)[0].split())
    assert process.returncode != 0
    assert "Another NodeManager must run while data2 is away, but none would be left of 1" in output
    operator.runs("running", "data1")
    assert operator.is_as_before()


class Upgrade(Operator):
    """playbooks/layers/upgrade.yml with upgrade_drain: its rollout, in which a program that records YARN's states stands for the driver."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        layers = REPOSITORY / "playbooks" / "layers" / "upgrade.yml"
        check, play = yaml.safe_load(layers.read_text(encoding="utf-8"))[:2]
        self.journal, self.broken = cluster.directory / "journal", cluster.directory / "broken"
        ask = f"curl --silent --show-error http://{cluster.web}/ws/v1/cluster/nodes >> {self.journal}; echo >> {self.journal}"
        cluster.program("change", f"{ask}\n[ ! -e {self.broken} ]\n")
        change = {"name": "Change the host", "ansible.builtin.command": str(cluster.directory / "change")}
        (rollout,) = play["tasks"]
        task_names = ("Take the host out of YARN", "Change the host", "Put the host back into YARN")
        rollout["block"] = [
            change if task["name"] == task_names[1] else task for task in rollout["block"] if task["name"] in task_names
        ]
        assert [task["name"] for task in rollout["block"]] == list(task_names)
        check["tasks"] = [task for task in check["tasks"] if task["name"] == "Check that the host can leave YARN"]
        assert check["tasks"]
        check.update(hosts="data_nodes", become=False)
        play.update(hosts="data_nodes", become=False, serial=1)
        (cluster.directory / "play.yml").write_text(yaml.safe_dump([check, play]), encoding="utf-8")

    def run(self, *options: str) -> tuple[int, str]:
        upgrade_options = ("-e", "upgrade_drain=true", "-e", "upgrade_way_back=x", *options)
        process = self.starts("drained", "data_nodes", 120, *upgrade_options)
        output = " ".join(process.communicate(timeout=600)[0].split())
        return process.returncode, output

    def seen(self) -> list[dict[str, str]]:
        """YARN's states at each change."""
        answers = [json.loads(line) for line in self.journal.read_text(encoding="utf-8").splitlines()]
        return [
            {
                NAMES[node["nodeHostName"]]: node["state"]
                for node in answer["nodes"]["node"]
                if node["nodeHostName"] in NAMES  # the site has an excluded host, too
            }
            for answer in answers
        ]


def test_an_upgrade_changes_a_host_that_is_out_and_one_that_fails_stays_out_until_the_same_command(cluster):
    upgrade = Upgrade(cluster)
    upgrade.broken.touch()
    status, output = upgrade.run()
    assert status != 0
    assert "The rollout stopped at data1; hosts after it are unchanged." in output
    assert "it stays out until the same command succeeds" in output
    assert cluster.states() == {"data1": "DECOMMISSIONED", "data2": "RUNNING"}
    upgrade.broken.unlink()
    status, output = upgrade.run()
    assert status == 0, output
    drained_states = {"data1": "DECOMMISSIONED", "data2": "RUNNING"}
    assert upgrade.seen() == [drained_states, drained_states, {"data1": "RUNNING", "data2": "DECOMMISSIONED"}]
    assert upgrade.is_as_before()


def test_hosts_of_two_racks_do_not_leave_together_and_no_host_was_changed(cluster):
    upgrade = Upgrade(cluster)
    upgrade.journal.unlink(missing_ok=True)
    status, output = upgrade.run("-e", "upgrade_batch=100%")
    assert status != 0
    assert "must be of one rack" in output
    assert (
        "data1 is of /data1 and 127.0.0.3 of /data2" in output or "data2 is of /data2 and 127.0.0.2 of /data1" in output
    )
    assert not upgrade.journal.exists()
    assert upgrade.is_as_before()
