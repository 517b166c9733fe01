"""A cluster with Kerberos: what is refused, jobs by keytab in both modes, and the way back. Jobs by ticket are those of every cluster."""

import json
import re
import time
from collections.abc import Callable

import pytest

from hadoop_dl_dev.demo import images, kerberos, nodes, services
from hadoop_dl_dev.demo.cluster import KEYTAB, REALM
from hadoop_dl_dev.demo.kerberos import USER_KEYTAB
from hadoop_dl_dev.demo.shell import output

DIGITS = "/home/analyst/digits"
BY_KEYTAB = f"--principal analyst@{REALM} --keytab ../analyst.keytab"  # in its home
JOB = (
    f"tfos-submit {BY_KEYTAB} --deploy-mode cluster --executors 2 --gpus 1 --timeout 600 --py-files digits.py,job.py,storage.py --result result.json "
    "$(tfos-submit --local choose.py spark) --data hdfs:///user/analyst/digits --output hdfs:///user/analyst/by-keytab "
    "--input-mode spark --num-gpus 1 --minimum-accuracy 0.95 --result result.json"
)
# The trial that says "many" fails before it imports TensorFlow, in the first run and in the second.
TRIALS = {"epochs": [1, "many"], "learning-rate": [0.001]}
GRID = f"cd ../images && deeplearning grid {BY_KEYTAB} --gpus 1 --params /tmp/grid.json --timeout 300 --py-files images.py --output hdfs://"
# Without a driver, an open that the kernel allows ends with ENXIO.
OPEN_GPUS = """
from __future__ import print_function

import errno, os, socket, sys
from pyspark import SparkConf, SparkContext

conf = SparkConf().set("spark.executor.resource.gpu.amount", "1").set("spark.task.resource.gpu.amount", "1")
context = SparkContext(conf=conf.set("spark.executor.resource.gpu.discoveryScript", "/usr/local/bin/one-gpu"))


def attempt(path):
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError as error:
        return errno.errorcode[error.errno]


print("DRIVER", attempt("/dev/gpu0"), attempt("/dev/gpu1"))
count = int(context.getConf().get("spark.executor.instances"))
look = lambda numbers: [(socket.gethostname(), attempt("/dev/gpu0"), attempt("/dev/gpu1"))]
for one in context.parallelize(range(count), count).barrier().mapPartitions(look).collect():
    print("OPENED", *one)
context.stop()
"""
ONE_GPU = """#!/bin/sh
echo '{"name": "gpu", "addresses": ["0"]}'
"""
Answer = tuple[int, str]
Shell = Callable[[str, str], Answer]


@pytest.fixture
def analyst(shell: Shell) -> Callable[[str], Answer]:
    """Run a command as analyst in the example's directory, with a ticket cache of its own: exit status and output."""

    def analyst(line: str) -> Answer:
        script = f"cd {DIGITS} && export KRB5CCNAME=$(mktemp -u) && {line}"
        return shell("edge1", f"su - analyst -c '{script}'")

    return analyst


def test_the_web_addresses_ask_for_a_ticket(shell):
    ask = "curl -s -o /dev/null -w %{http_code} http://master1:"
    for address in ("8088/ws/v1/cluster/apps", "9870/jmx"):
        assert shell("edge1", ask + address) == (0, "401")


def test_hdfs_is_asked_with_the_nodemanagers_own_login_before_a_datanode_reboots(cluster, play, tmp_path):
    ask = {"hadoop_daemons_info": {"conf_dir": "/etc/hadoop/conf"}, "register": "answer"}
    good = f"answer.daemons == ['DataNode'] and answer.silent == '' and answer.hdfs.live == {cluster.data_nodes}"
    tasks = [ask, {"ansible.builtin.assert": {"that": good, "fail_msg": "saw {{ answer | to_json }}"}}]
    book = [{"hosts": "data_nodes", "gather_facts": False, "become": True, "tasks": tasks}]
    (tmp_path / "ask.yml").write_text(json.dumps(book), encoding="utf-8")
    status, text = play(str(tmp_path / "ask.yml"))
    assert status == 0, text


def test_the_suite_asks_hdfs_and_leaves_no_ticket(cluster, shell, play):
    """On every host, as the command that make demo prints."""
    status, text = play("playbooks/verify.yml")
    assert status == 0, text[-4000:]
    skipped_lines = "\n".join(line for line in text.splitlines() if "SKIPPED" in line)
    assert "Kerberos" not in skipped_lines
    for host in (*cluster.data_hosts, "edge1"):
        assert shell(host, "ls -d /run/deeplearning-login-* 2>/dev/null || true") == (0, "")


def test_a_job_in_cluster_mode_runs_by_keytab_with_gpus(analyst, gpu_devices):
    status, text = analyst(f"rm -f result.json && {JOB}")
    assert status == 0, text[-6000:]
    assert "cannot be detected" not in text
    assert json.loads(analyst("cat result.json")[1])["accuracy"] >= 0.95


@pytest.mark.usefixtures("gpu_devices")
def test_a_grid_gives_each_trial_a_gpu_and_runs_only_what_failed_again(cluster, analyst, shell):
    """By keytab, in client mode and then in cluster mode."""
    edge, directory = cluster.container("edge1"), f"/user/analyst/grid-{time.time_ns()}"
    output("docker", "cp", str(images.REPOSITORY / "examples/images"), f"{edge}:/home/analyst/")
    kerberos.write(cluster, "edge1", "/tmp/grid.json", json.dumps(TRIALS), "root:root", "0644")
    good_rows = []
    for done_count, mode in enumerate(("client", "cluster")):
        status, text = analyst(f"{GRID}{directory} --deploy-mode {mode} plain.py")
        assert (status, f"2 trials in hdfs://master1:8020{directory}, {done_count} of them done before" in text) == (
            1,
            True,
        ), text[-6000:]
        assert "tfos-submit: 1 of 2 trials are done." in text, text[-6000:]
        title, *rows = [line.split() for line in text[text.index("ACCURACY ") :].splitlines()[:3]]
        assert title == ["ACCURACY", "EPOCHS", "LEARNING-RATE", "SECONDS", "HOST", "STATUS"]
        good, bad = rows
        assert (good[1:3], good[4] in cluster.data_hosts, good[5:]) == (["1", "0.001"], True, ["done"]), text[-6000:]
        assert (bad[:3], bad[4] in cluster.data_hosts, bad[5]) == (["-", "many", "0.001"], True, "failed:"), text[
            -6000:
        ]
        good_rows.append(good)
    assert good_rows[0] == good_rows[1], "its result is that of the first run"
    text = nodes.execute(cluster.container("master1"), "hdfs", "dfs", "-cat", f"{directory}/*/trial.json")
    good, bad = json.loads("[" + text.replace("}{", "},{") + "]")
    environment = shell("edge1", "readlink /opt/deeplearning/current")[1].strip().rpartition("/")[2]
    assert re.fullmatch(rf"{cluster.stack}-[0-9a-f]{{12}}", environment)
    for trial, status in ((good, "done"), (bad, "failed")):
        assert (trial["status"], trial["environment"], len(trial["gpus"])) == (status, environment, 1)
    assert (good["host"], format(good["metrics"]["accuracy"], ".4g")) == (good_rows[0][4], good_rows[0][0])
    assert "invalid int value: 'many'" in bad["error"]
    assert good["application"] < bad["application"], "the second run ran the other trial alone"


@pytest.mark.skipif(not kerberos.isolates(), reason="this machine has no devices controller of cgroup v1")
def test_an_executor_can_open_its_own_gpu_alone_and_the_driver_none(cluster, analyst):
    """Real NodeManagers and the kernel's refusal; container-executor is a stand-in (demo/hadoop)."""
    for host in cluster.data_hosts:
        kerberos.write(cluster, host, "/usr/local/bin/one-gpu", ONE_GPU, "root:root", "0755")
        nodes.execute(
            cluster.container(host), "sh", "-c", "umask 0; cd /dev; for n in 0 1; do mknod gpu$n c 195 $n; done"
        )
    kerberos.write(cluster, "edge1", "/tmp/open_gpus.py", OPEN_GPUS, "root:root", "0644")
    try:
        status, text = analyst(
            f"kinit -k -t {USER_KEYTAB} analyst@{REALM} && tfos-submit --deploy-mode cluster --executors {2 * len(cluster.data_hosts)} "
            "--memory 1g --timeout 180 /tmp/open_gpus.py"
        )
    finally:
        for host in cluster.data_hosts:
            nodes.execute(cluster.container(host), "rm", "-f", "/dev/gpu0", "/dev/gpu1", "/usr/local/bin/one-gpu")
    assert status == 0, text[-6000:]
    rows = sorted(line.split()[1:] for line in text.splitlines() if line.startswith("OPENED"))
    assert "DRIVER EPERM EPERM" in text.splitlines(), text[-6000:]
    assert rows == [[host, *pair] for host in cluster.data_hosts for pair in (["ENXIO", "EPERM"], ["EPERM", "ENXIO"])]


def test_a_login_that_does_not_work_changes_no_host(shell, play):
    look = "ls -laR --time-style=full-iso /opt/deeplearning/etc /opt/deeplearning/state && ls -la --time-style=full-iso /opt/deeplearning/envs"
    before = shell("edge1", look)
    assert shell("edge1", f"chmod 644 {KEYTAB}")[0] == 0
    status, text = play("site.yml", "-e", "apply=all")
    assert shell("edge1", f"chmod 400 {KEYTAB}")[0] == 0
    assert (status != 0, "by its owner alone" in text, "No host was changed" in text) == (True, True, True), text
    assert shell("edge1", look) == before


def test_removal_restores_yarn_and_leaves_nothing_in_hdfs(cluster, shell, play):
    look = ("hdfs", "dfs", "-ls", "-R", "/apps/deeplearning")
    master = cluster.container("master1")  # root there has the ticket of HDFS's superuser
    assert "pyspark-" in nodes.execute(master, *look)
    status, text = play("playbooks/remove.yml", "-e", "remove_confirmed=true")
    assert status == 0, text[-4000:]
    assert nodes.execute(master, *look) == ""
    for host in (*cluster.data_hosts, "edge1"):
        assert shell(host, "ls -A /opt/deeplearning /etc/systemd/system/deeplearning-* 2>/dev/null || true") == (0, "")
    scheduler = (images.DATA / "rootfs/etc/hadoop/conf/capacity-scheduler.xml").read_text(encoding="utf-8")
    for host in ("master1", *cluster.data_hosts):
        assert shell(host, f"cat {kerberos.CONF}/yarn-site.xml") == (0, kerberos.settings("yarn-site.xml"))
        assert shell(host, f"cat {kerberos.CONF}/capacity-scheduler.xml") == (0, scheduler)
        assert shell(host, f"test ! -e {kerberos.CONF}/resource-types.xml") == (0, "")
    for host in cluster.data_hosts if kerberos.isolates() else ():
        assert shell(host, f"cat {kerberos.EXECUTOR_CONFIG}") == (0, kerberos.EXECUTOR_SETTINGS)
    services.until("YARN", lambda: services.yarn_problem(cluster))
    assert "yarn.io/gpu" not in json.dumps(services.get(cluster, ":8088/ws/v1/cluster/nodes"))
