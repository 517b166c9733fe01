"""tfos-submit on a real cluster: its messages and exit status if something is wrong."""

import json
import time

import pytest

WAIT = 15  # seconds without all executors

RUNS = "from pyspark import SparkContext\nSparkContext().parallelize(range(4), 2).map(lambda number: number).count()\n"
PLACES = """
import socket
from pyspark import SparkContext
hosts = SparkContext().parallelize(range(2), 2).barrier().mapPartitions(lambda _: [socket.gethostname()]).collect()
print("ON " + " ".join(sorted(hosts)))
"""
FAILS = "from pyspark import SparkContext\nSparkContext().parallelize(range(4), 2).map(lambda number: number // 0).count()\n"
HANGS = "import time\nfrom pyspark import SparkContext\ncontext = SparkContext()\ntime.sleep(600)\n"


@pytest.fixture
def submit(shell):
    """Submit a script as the user analyst from the edge node: exit status and what was said."""

    def submit(script: str, *arguments: str) -> tuple[int, str]:
        code, output = shell("edge1", f"cat > /tmp/job.py <<'END'\n{script}END\nchmod 644 /tmp/job.py")
        assert code == 0, output
        return shell(
            "edge1", f"su analyst -c 'cd /tmp && /opt/deeplearning/bin/tfos-submit {' '.join(arguments)} /tmp/job.py'"
        )

    return submit


def applications(shell) -> list[dict]:
    """Every application that YARN knows."""
    ask = "import urllib.request as r; print(r.urlopen('http://master1:8088/ws/v1/cluster/apps').read().decode())"
    code, output = shell("master1", f'python3 -c "{ask}"')
    assert code == 0, output
    return (json.loads(output)["apps"] or {}).get("app", [])


def last_application(shell) -> dict:
    return max(applications(shell), key=lambda application: application["startedTime"])


def test_a_job_runs_with_one_executor_on_each_node(submit, cluster):
    code, output = submit(PLACES, "--memory", "1g", "--per-node", "1", "--timeout", "180")
    assert code == 0, output
    assert f"ON {' '.join(cluster.data_hosts)}" in output.splitlines()
    assert "2 executors with 3073 MB and 1 vcore each" in output, "more than half of a node's 6144"


def test_an_executor_that_never_comes_is_told_with_what_yarn_had_and_what_was_asked(submit, shell):
    code, output = submit(RUNS, "--executors", "30", "--memory", "2g", "--wait", str(WAIT))
    assert code == 4, output
    assert "30 executors were asked for, each with 2048 MB and 1 vcore, in queue default" in output
    assert "data1" in output
    assert "6144" in output
    assert "--executors" in output.partition("What to do:")[2]
    application = last_application(shell)
    assert application["state"] in ("KILLED", "FAILED", "FINISHED")
    assert application["elapsedTime"] / 1000 < WAIT + 35, "told soon after that, then ended"


def test_a_script_that_fails_ends_with_the_executors_words(submit):
    code, output = submit(FAILS, "--memory", "1g", "--timeout", "180")
    assert code == 1, output
    assert "ZeroDivisionError" in output
    assert "the ends of the containers' logs" in output


def test_a_job_that_takes_too_long_is_ended(submit, shell):
    start = time.monotonic()
    code, output = submit(HANGS, "--memory", "1g", "--timeout", "25")
    assert code == 5, output
    assert time.monotonic() - start < 120
    assert last_application(shell)["state"] in ("KILLED", "FAILED", "FINISHED")


@pytest.fixture
def label(shell, cluster):
    """The last data host has the node label gpu, which is exclusive."""

    def rmadmin(*commands: str) -> None:
        for command in commands:
            code, output = shell("master1", f"su yarn -s /bin/sh -c 'yarn rmadmin {command}'")
            assert code == 0, output

    host = cluster.data_hosts[-1]
    rmadmin('-addToClusterNodeLabels "gpu(exclusive=true)"')
    try:
        rmadmin(f"-replaceLabelsOnNode {host}=gpu")
        yield host
    finally:
        rmadmin("-removeFromClusterNodeLabels gpu")


def test_executors_with_a_label_come_to_its_node_and_the_master_does_not(submit, shell, label):
    code, output = submit(PLACES, "--node-label", "gpu", "--memory", "1g", "--timeout", "180")
    assert code == 0, output
    assert f"ON {label} {label}" in output.splitlines()
    assert not last_application(shell)["amHostHttpAddress"].startswith(f"{label}:")
    code, output = submit(PLACES, "--node-label", "tpu")
    assert (code, "the node label tpu must be one of YARN's, but YARN has gpu." in output) == (3, True), output


def test_nothing_is_left_running(shell):
    assert [
        application["id"] for application in applications(shell) if application["state"] in ("ACCEPTED", "RUNNING")
    ] == []
