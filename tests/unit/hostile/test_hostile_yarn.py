"""YARN as an attacker, or a fault, would have it: what it answers, and when, against the programs of users. Anybody's application is in its answers."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import yarn_cluster, yarn_nodes
from interpreters import HOST_PYTHONS
from loopback import Quiet, served, trickling
from resource_manager import ADDRESS, application, write_settings
from tfos_host import app, refusal, start, submit
from tfos_submit import outcome
from waiting import until


def test_an_answer_of_yarn_has_a_largest_size(monkeypatch):
    monkeypatch.setattr(yarn_cluster, "LARGEST", 1000)

    class Large(Quiet):
        def do_GET(self) -> None:
            self.answer(200, b"x" * 2000)

    with served(Large) as address, pytest.raises(OSError, match="at most"):
        yarn_cluster.fetch(address)


def test_an_answer_of_yarn_comes_from_the_address_that_was_asked(tmp_path):
    (tmp_path / "key").write_text("secret")
    with pytest.raises(ValueError, match="http"):
        yarn_cluster.fetch(f"file://{tmp_path}/key#")

    class Elsewhere(Quiet):
        def do_GET(self) -> None:
            if self.path == "/here":
                self.answer(200, b"of another page")
            self.send_response(302)
            self.send_header("Location", "/here")
            self.end_headers()

    with served(Elsewhere) as address, pytest.raises(OSError, match="302"):
        yarn_cluster.fetch(address + "/there")


DEEP = '{"a":' * 30_000 + "1" + "}" * 30_000


@pytest.mark.parametrize("text", ["[]", "5", '"x"', "", "{", DEEP, '{"a": ' + "9" * 1_000_000 + "}"])
def test_an_answer_of_yarn_is_a_mapping(monkeypatch, text):
    monkeypatch.setattr(yarn_cluster, "fetch", lambda url: text)
    begin = time.monotonic()
    with pytest.raises(ValueError, match="."):
        yarn_cluster.ask("http://x")
    assert time.monotonic() - begin < 5
    with pytest.raises(yarn_nodes.Silent):
        yarn_nodes.cluster(["http://x"])


WRONG = [None, True, -1, 1e400, "x", "\x1b[2J", [], ["x"], {}, {"x": 1}, [[]], [None]]


def confused(wrong: Any) -> Any:
    """Every value of every answer is this, below the names that it has."""
    broken = dict.fromkeys(app(), wrong)
    broken |= dict.fromkeys(("nodeHostName", "availMemoryMB", "nodeLabels", "resourceInfo", "availableResource"), wrong)
    lists = {"app": [broken, wrong], "node": [broken, wrong], "nodeLabelInfo": wrong, "container": [broken]}
    return {**lists, "apps": lists, "nodes": lists, "scheduler": {"schedulerInfo": broken}, "appAttempts": wrong}


def runs(host: SimpleNamespace) -> bool:
    """Whether the host's spark-submit is still there."""
    path = host.tmp / "pid"
    return path.exists() and Path(f"/proc/{path.read_text().strip()}").exists()


def long_job(host: SimpleNamespace) -> None:
    host.spark_submit(
        f"echo $$ > {host.tmp}/pid; echo 'Submitted application application_1_0001' >&2; exec sleep 120\n"
    )


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_a_confused_yarn_ends_the_job_in_time(host, wrong):
    long_job(host)
    host.yarn.answer = lambda path: confused(wrong)
    completed = submit(host, "--timeout", "2", "--poll", "0.2")
    assert "Traceback" not in completed.error
    assert completed.code == outcome.TOO_LONG, completed.error
    assert not runs(host)
    assert "\x1b" not in completed.error
    assert "application -kill application_1_0001" in (host.tmp / "yarn.log").read_text()


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_a_yarn_that_trickles_ends_the_job_in_time(host, python):
    long_job(host)
    begin = time.monotonic()
    with trickling() as address:
        write_settings(host.tmp / "conf/yarn-site.xml", {ADDRESS: address.removeprefix("http://")})
        completed = submit(host, "--timeout", "2", "--poll", "0.2", python=python)
    assert completed.code == outcome.TOO_LONG, completed.error
    assert time.monotonic() - begin < 58, "the job's executors hold GPUs"
    assert not runs(host)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_whatever_ends_tfos_submit_ends_spark_submit(host, number, mode):
    long_job(host)
    host.yarn.application = app("RUNNING", 1)
    process = start(host, "--deploy-mode", mode)
    until(lambda: runs(host))
    time.sleep(0.5)
    assert process.stderr is not None
    process.stderr.close()  # nobody reads any more
    process.send_signal(number)
    process.wait(50)
    until(lambda: not runs(host))
    if number != signal.SIGKILL:
        assert process.returncode == outcome.INTERRUPTED
        assert "application -kill application_1_0001" in (host.tmp / "yarn.log").read_text()


def test_a_job_that_nohup_started_outlives_its_terminal(host):
    long_job(host)
    host.yarn.application = app("RUNNING", 1)
    process = start(host, python="nohup")
    until(lambda: runs(host))
    process.send_signal(signal.SIGHUP)
    time.sleep(1)
    assert (process.poll(), runs(host)) == (None, True)
    process.terminate()
    process.wait(50)
    until(lambda: not runs(host))


@pytest.mark.parametrize("step", ["/nodes", "/apps?applicationTags", "/get-node-labels", "/scheduler"])
def test_a_yarn_that_dies_at_a_step_leaves_no_job(host, step):
    long_job(host)
    honest = host.yarn.answer
    host.yarn.application = app("RUNNING", 1)
    host.yarn.answer = lambda path: "no answer" if step in path else honest(path)
    completed = submit(host, "--timeout", "3", "--wait", "1", "--poll", "0.2")
    assert completed.code in (outcome.TOO_LONG, outcome.NO_EXECUTORS), completed.error
    assert not runs(host)
    assert "application -kill application_1_0001" in (host.tmp / "yarn.log").read_text()


def test_names_in_yarn_move_no_cursor(host):
    """Without Kerberos anybody submits an application as anna."""
    evil = "\x1b]0;owned\x07\u202eevil"
    host.yarn.answer = lambda path: {
        "apps": {"app": [application(1, "RUNNING", name=evil, queue=evil, trackingUrl=evil, diagnostics=evil)]}
    }
    command = [str(host.program), "jobs", "--root", str(host.root)]
    completed = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60, env={**os.environ, "HADOOP_USER_NAME": "anna"}
    )
    assert "evil" in completed.stdout
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", completed.stdout)


def test_only_its_own_mark_keeps_an_environment(monkeypatch, tmp_path):
    """An application of anybody with a tag of tfos-submit would keep all environments for ever."""
    tags = {"application_1_0001": "tfos-submit-x", "application_1_0002": "tfos-submit-y,environment-0123456789ab"}
    rows = [{"id": name, "user": "mallory", "applicationTags": tag} for name, tag in tags.items()]
    monkeypatch.setattr(yarn_cluster, "fetch", lambda url: json.dumps({"apps": {"app": rows}}))
    write_settings(tmp_path / "yarn-site.xml", {ADDRESS: "master1:8088"})
    (tmp_path / "env.sh").write_text(f"export HADOOP_CONF_DIR={tmp_path}\n")
    reasons = yarn_cluster.reasons(["tf-0123456789ab", "tf-ba9876543210"], str(tmp_path / "env.sh"))
    assert reasons == {"tf-0123456789ab": "YARN has the application application_1_0002 of mallory"}


def test_settings_that_are_no_xml_are_named_before_a_job_starts(host):
    """A torn yarn-site.xml counted as one without Kerberos and without a ResourceManager."""
    (host.tmp / "conf/core-site.xml").write_text("<configuration><property>")
    assert f"{host.tmp}/conf/core-site.xml must be XML, but is not" in refusal(host)
