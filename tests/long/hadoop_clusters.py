"""Demo clusters with another Hadoop or with Kerberos, and the checks that several of them share."""

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import interpreters
import yaml
from ansible.module_utils.hadoop_dl_host import yarn_cluster
from demo_commands import play, run

from hadoop_dl_dev.demo import cli, cluster, images, kerberos, nodes, services, tour


@contextmanager
def of_its_own(found: cluster.Cluster) -> Iterator[None]:
    """The cluster after its first job, which trains on the digits; removed at the end."""
    try:
        assert tour.run_all(found, cli.up) == 0
        yield
    finally:
        cluster.down(found.name)


def changes(said: str) -> set[str]:
    return set(re.findall(r"changed=(\d+)", said))


@contextmanager
def labelled(found: cluster.Cluster, label: str, queues: dict[str, int]) -> Iterator[None]:
    """The site gives data2 the label, and data1 none."""
    variables = {"yarn_gpu_node_label": label, "yarn_gpu_node_label_queues": queues}
    files: dict[str, dict[str, Any]] = {f"group_vars/{group}.yml": variables for group in ("data_nodes", "masters")}
    files["host_vars/data1.yml"] = {"yarn_gpu_node_label": ""}
    for name, content in files.items():
        (found.inventory / name).parent.mkdir(exist_ok=True)
        (found.inventory / name).write_text(yaml.safe_dump(content), encoding="utf-8")
    try:
        yield
    finally:
        for name in files:
            (found.inventory / name).unlink()


def labels(found: cluster.Cluster) -> dict[str, list[str]]:
    """Node that runs -> what YARN says, once all are registered again."""
    services.until("YARN", lambda: services.yarn_problem(found))
    running_nodes = services.get(found, ":8088/ws/v1/cluster/nodes?states=RUNNING")["nodes"]["node"]
    return {node["nodeHostName"]: node.get("nodeLabels", []) for node in running_nodes}


def lose_an_executor(found: cluster.Cluster) -> None:
    """Power off a host on which the running application has an executor, but not its master."""

    def ask(path: str) -> dict[str, Any]:
        answer: dict[str, Any] = services.get(found, ":8088/ws/v1/cluster" + path)
        return answer

    (application,) = ask("/apps?states=RUNNING")["apps"]["app"]
    addresses = yarn_cluster.containers(ask, application["id"])
    hosts = {name: re.sub(r"^\w+://|:\d+$", "", address) for name, address in addresses}
    (master,) = (host for name, host in hosts.items() if name.endswith("_000001"))
    lost = next(host for host in sorted(hosts.values()) if host != master)
    run("docker", "kill", found.container(lost))


def configuration(found: cluster.Cluster) -> dict[str, str]:
    """Host -> the names and bytes of its files of Hadoop's configuration."""
    show = f"cd /{CONF}; for file in *; do echo $file; cat $file; done"
    return {host: nodes.execute(found.container(host), "sh", "-c", show) for host in ("master1", *found.data_hosts)}


def as_daemon(found: cluster.Cluster, name: str, command: str) -> str:
    """The command on master1 by one of Hadoop's accounts, with its login if there is Kerberos."""
    if found.kerberos:
        login = f"kinit -k -t {kerberos.KEYTABS}/{name}.keytab {name}/master1@{cluster.REALM}"
        command = f"export KRB5CCNAME=/tmp/{name}; {login} && {command}"
    return nodes.execute(found.container("master1"), "sh", "-c", command, user=name)


def check_labels(found: cluster.Cluster) -> None:
    """The role gives a label, the suite asks for it, a job uses it. YARN loses it and gets it again, and the role takes it away."""
    before = configuration(found)
    as_daemon(found, "hdfs", f"hdfs dfs -mkdir -p {STORE} && hdfs dfs -chown yarn {STORE}")
    with labelled(found, "fast", {"root.default": 100}):
        output = play(found, *OF_ALL)
        assert labels(found) == {"data1": [], "data2": ["fast"]}, output
        assert changes(play(found, *WINDOW)) == {"0"}
        assert " 0 failed" in play(found, "playbooks/verify.yml")
        submit = "cat > places.py; tfos-submit --node-label fast --memory 1g --timeout 600 places.py 2>&1"
        edge = ("docker", "exec", "--interactive", found.container("edge1"), "su", "-", "analyst", "-c", submit)
        job = subprocess.run(edge, input=PLACES, stdout=subprocess.PIPE, text=True, check=False)
        assert (job.returncode, "ON data2 data2" in job.stdout.splitlines()) == (0, True), job.stdout
        as_daemon(found, "yarn", "yarn rmadmin -replaceLabelsOnNode data2=")
        output = play(found, "playbooks/verify.yml", status=2)
        assert "data2 should have the node label fast, but has none." in output
        play(found, *OF_ALL)
        assert labels(found) == {"data1": [], "data2": ["fast"]}
    play(found, *OF_ALL)
    assert (labels(found), configuration(found)) == ({"data1": [], "data2": []}, before)


def check_removal(found: cluster.Cluster) -> None:
    """The removal of yarn_gpu and its label restores the files of the image, byte by byte."""
    with labelled(found, "fast", {"root.default": 100}):
        play(found, *OF_ALL)
        assert labels(found)["data2"] == ["fast"]
        options = ("-e", "remove_confirmed=true", "-e", "yarn_gpu_restart_allowed=true")
        play(found, "playbooks/remove.yml", "--tags", "yarn_gpu", *options)
    files = {path.name: path.read_text(encoding="utf-8") for path in (images.DATA / "rootfs" / CONF).iterdir()}
    content = "".join(f"{name}\n{files[name]}" for name in sorted(files))
    assert configuration(found) == dict.fromkeys(("master1", *found.data_hosts), content)
    assert labels(found) == {"data1": [], "data2": []}
    text = json.dumps([services.get(found, f":8088/ws/v1/cluster/{page}") for page in ("nodes", "get-node-labels")])
    assert not re.search("yarn.io/gpu|fast", text)


def run_e2e(found: cluster.Cluster, name: str) -> None:
    """tests/e2e/test_NAME.py on this cluster."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"tests/e2e/test_{name}.py"]
    environment = {**os.environ, "E2E_CLUSTER": found.name, "E2E_STACK": found.stack}
    assert subprocess.run(command, cwd=images.REPOSITORY, env=environment, check=False).returncode == 0


def check_versions(found: cluster.Cluster) -> None:
    edge = found.container("edge1")
    assert nodes.execute(edge, "hadoop", "version").startswith(f"Hadoop {found.hadoop}")
    assert 'version "1.8.' in nodes.execute(edge, "sh", "-c", "java -version 2>&1")


CONF, STORE = "etc/hadoop/conf", "/yarn/node-labels"
WINDOW = ("playbooks/yarn_gpu.yml", "-e", "yarn_gpu_restart_allowed=true")
# A ResourceManager of 2.10 or 3.1 that restarts may silence NodeManagers; a run restarts those of the hosts that it changes.
OF_ALL = (*WINDOW, "-e", "apply=all")
PLACES = runpy.run_path(str(images.REPOSITORY / "tests/e2e/test_submit.py"))["PLACES"]
ENVIRONMENTS, ASIDE = "/opt/deeplearning/envs", "/opt/deeplearning/aside"
TRAIN = """
exec 2>&1; set -e; cd digits; home=hdfs:///user/analyst
train=$(tfos-submit STACK --local choose.py tensorflow)
tfos-submit STACK OPTIONS --deploy-mode MODE --memory 2g --timeout 600 --py-files digits.py,job.py,storage.py --result result.json \
    "$train" --data $home/digits --output $home/trained-MODE --input-mode tensorflow --num-gpus 0 --minimum-accuracy 0.95 --result result.json
"""


def train(found: cluster.Cluster, mode: str, options: str = "", stack: str = "") -> str:
    """What was said while TensorFlow read the digits from HDFS. The driver is on the edge node, or on a data node."""
    script = TRAIN.replace("STACK", stack).replace("OPTIONS", options).replace("MODE", mode)
    output = nodes.execute(found.container("edge1"), "su", "-", "analyst", "-c", script, check=False)
    assert 'RESULT {"accuracy": 0.9' in output, output
    return output


def add_python(found: cluster.Cluster, version: str) -> None:
    """A Python that no image has, from this machine, where a host's own is."""
    path = interpreters.found(version)
    assert path, f"Python {version} is required on this machine, for the nodes"
    home = f"/opt/python{version}"
    for host in ("edge1", *found.data_hosts):
        container = found.container(host)
        subprocess.run(["docker", "cp", str(Path(path).resolve().parents[1]), f"{container}:{home}"], check=True)
        link = f"ln -s {home}/bin/python{version} /usr/bin; ln -s {home}/lib/libpython{version}*.so.* /usr/lib"
        nodes.execute(container, "sh", "-ec", link)


def train_beside(found: cluster.Cluster, *stacks: str) -> None:
    """The digits with stacks beside the active one, each with its own Spark."""
    play(found, "site.yml", "-e", json.dumps({"deeplearning_additional_stacks": stacks}))
    for stack in stacks:
        for mode in ("client", "cluster"):
            train(found, mode, stack=f"--stack {stack}")


def train_without_environments(found: cluster.Cluster) -> None:
    """Executors whose hosts have no environment get it by YARN."""
    hosts = [found.container(host) for host in found.data_hosts]
    for host in hosts:
        nodes.execute(host, "mv", ENVIRONMENTS, ASIDE)
    try:
        for mode in ("client", "cluster"):
            output = train(found, mode, "--archive $home/envs")
            assert ("; later jobs find it there" in output) is (mode == "client")
    finally:
        for host in hosts:
            nodes.execute(host, "mv", ASIDE, ENVIRONMENTS)
