"""A cluster with Kerberos: site.yml with the suite, jobs by ticket and by keytab, refusals, removal. A cluster of its own, removed at the end."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest

from hadoop_dl_dev.demo import images, kerberos, nodes
from hadoop_dl_dev.demo.cluster import KEYTAB, REALM, Cluster

CLUSTER = Cluster("tf2.15-cpu-py3-el9", name="kd", kerberos=True)
DIGITS = "/home/analyst/digits"
SUBMIT = (
    "tfos-submit --executors 2 --timeout 600 --py-files digits.py,job.py,storage.py {} "
    "$(tfos-submit --local choose.py spark) --data hdfs:///user/analyst/digits --output hdfs:///user/analyst/model-{} "
    "--input-mode spark --num-gpus 1 --minimum-accuracy 0.95 --result result.json"
)
BY_KEYTAB = f"--principal analyst@{REALM} --keytab {kerberos.USER_KEYTAB}"


def command(*words: str) -> tuple[int, str]:
    done = subprocess.run(
        words, cwd=images.REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, done.stdout


def play(playbook: str, *options: str) -> tuple[int, str]:
    return command(".venv/bin/ansible-playbook", "-i", str(CLUSTER.inventory), playbook, *options)


def analyst(line: str) -> tuple[int, str]:
    """A command of the user on the edge node, in the example's directory."""
    script = f"cd {DIGITS} && PATH=/opt/deeplearning/bin:$PATH && {line}"
    return command("docker", "exec", "--user", "analyst", CLUSTER.container("edge1"), "sh", "-c", script)


def root(line: str, host: str = "edge1") -> str:
    return nodes.execute(CLUSTER.container(host), "sh", "-c", line)


@pytest.fixture(scope="module", autouse=True)
def _cluster_of_its_own() -> Iterator[None]:
    """Up to the first job, which a ticket lets in; the suite ran, on hosts whose question to HDFS needs one."""
    yield
    pass


def test_the_suite_asks_hdfs_on_every_host() -> None:
    status, said = play("playbooks/verify.yml")
    assert status == 0, said[-4000:]
    assert " 0 failed" in said
    assert "SKIPPED" not in said
    for host in ("edge1", "data1", "data2"):
        assert root("ls -d /run/deeplearning-login-* 2>/dev/null || true", host) == "", "a ticket was left"


def test_the_web_address_asks_for_a_ticket() -> None:
    assert root("curl -s -o /dev/null -w '%{http_code}' http://master1:8088/ws/v1/cluster/apps") == "401"


def test_no_ticket_and_a_keytab_for_all_are_refused_before_submission() -> None:
    status, said = analyst("kdestroy; tfos-submit train.py || tfos-submit choose.py")
    assert (status, "there is none" in said) == (3, True), said
    status, said = analyst(
        f"cp {kerberos.USER_KEYTAB} /tmp/open.keytab; chmod 644 /tmp/open.keytab; "
        f"tfos-submit --principal analyst@{REALM} --keytab /tmp/open.keytab choose.py"
    )
    assert (status, "by its owner alone" in said) == (3, True), said


def test_an_expired_ticket_is_refused_before_submission() -> None:
    status, said = analyst(f"kinit -l 1s -k -t {kerberos.USER_KEYTAB} analyst@{REALM}; sleep 2; tfos-submit choose.py")
    assert (status, "ended at" in said) == (3, True), said


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_a_job_runs_by_keytab(mode: str) -> None:
    """No ticket of the user's: that of the keytab is tfos-submit's own."""
    line = SUBMIT.format(f"{BY_KEYTAB} --deploy-mode {mode} --result result.json", mode)
    status, said = analyst(f"kdestroy; rm -f result.json; {line}")
    assert status == 0, said[-6000:]
    assert "cannot be detected" not in said
    assert json.loads(analyst("cat result.json")[1])["accuracy"] >= 0.95


def test_a_login_that_does_not_work_changes_no_host() -> None:
    before = root("ls -la --time-style=full-iso /opt/deeplearning/envs /opt/deeplearning/etc")
    root(f"chmod 644 {KEYTAB}")
    status, said = play("site.yml", "-e", "apply=all")
    root(f"chmod 400 {KEYTAB}")
    assert (status != 0, "by its owner alone" in said, "No host was changed" in said) == (True, True, True), said[
        -4000:
    ]
    assert root("ls -la --time-style=full-iso /opt/deeplearning/envs /opt/deeplearning/etc") == before


def test_removal_takes_the_archive_out_of_hdfs() -> None:
    status, said = play("playbooks/remove.yml", "-e", "remove_confirmed=true")
    assert status == 0, said[-4000:]
    left = nodes.execute(CLUSTER.container("master1"), "hdfs", "dfs", "-ls", "-R", "/apps/deeplearning")
    assert left.strip() == ""
    assert root("ls /opt/deeplearning 2>/dev/null || true") == ""
