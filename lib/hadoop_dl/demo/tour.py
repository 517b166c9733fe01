"""make demo: the whole way of a newcomer, from nothing to a model trained on YARN, with the time of every phase."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from hadoop_dl import stacks
from hadoop_dl.demo import images, nodes
from hadoop_dl.demo.cluster import Cluster
from hadoop_dl.demo.shell import DemoError, follow, output, phase, run, say

BIN = images.REPOSITORY / ".venv" / "bin"
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{BIN}:{os.environ['PATH']}",
    "ANSIBLE_CONFIG": str(images.REPOSITORY / "ansible.cfg"),
}


def fill_mirror(cluster: Cluster) -> None:
    """The mirror host fetches what it will serve. site.yml finds it done, and reports what went wrong otherwise."""
    say("    the mirror host fetches the artifacts (playbooks/mirror.yml) …")
    playbook = images.REPOSITORY / "playbooks" / "mirror.yml"
    run(str(BIN / "ansible-playbook"), "-i", str(cluster.inventory), str(playbook), check=False, env=ENVIRONMENT)


def run_all(cluster: Cluster, up: Callable[[Cluster, list[tuple[str, float]], Callable[[Cluster], None]], None]) -> int:
    """Exit status 0, or what the failing phase ended with; the same command continues."""
    times: list[tuple[str, float]] = []
    up(cluster, times, fill_mirror)
    with phase("ansible-playbook -i inventories/demo site.yml", times):
        status = follow(
            [str(BIN / "ansible-playbook"), "-i", str(cluster.inventory), str(images.REPOSITORY / "site.yml")],
            env=ENVIRONMENT,
        )
        if status:
            raise DemoError(
                f"site.yml ended with status {status}; its last lines say where. Repeat make demo once the cause is gone."
            )
    with phase("A training job on YARN", times):
        result = train(cluster)
    summary(cluster, times, result)
    return 0


def train(cluster: Cluster, mode: str = "spark") -> dict[str, Any]:
    """Submit examples/digits as the user analyst on the edge node; returns the job's own result."""
    edge = cluster.container("edge1")
    digits = images.REPOSITORY / "examples" / "digits"
    nodes.execute(edge, "rm", "-rf", "/home/analyst/digits")
    output("docker", "cp", str(digits), f"{edge}:/home/analyst/digits")
    nodes.execute(edge, "chown", "-R", "analyst:", "/home/analyst/digits")
    status = follow(
        ["docker", "exec", "--user", "analyst", "--workdir", "/home/analyst/digits", edge, "sh", "run.sh", mode]
    )
    if status:
        raise DemoError(f"the training job ended with status {status}; the lines above say why.")
    result: dict[str, Any] = json.loads(nodes.execute(edge, "cat", "/home/analyst/digits/result.json", user="analyst"))
    return result


def summary(cluster: Cluster, times: list[tuple[str, float]], result: dict[str, Any]) -> None:
    stack = stacks.load_stack(cluster.stack).data
    parts = ("python", "tensorflow", "keras", "tensorflowonspark", "pyspark", "tensorflow_io")
    say("\nWhat is where")
    for host in cluster.hosts:
        current = nodes.execute(cluster.container(host), "readlink", "/opt/deeplearning/current", check=False).strip()
        say(f"  {host:<8} {cluster.addresses[host]:<14} {current.rpartition('/')[2] or '-'}")
    say(f"  {cluster.stack}: " + ", ".join(f"{part} {stack[part]}" for part in parts if part in stack))
    say(
        f"\nThe job: accuracy {result['accuracy']:.3f} on held-out digits, {result.get('executors', '?')} executors, {result.get('seconds', '?')} s"
    )
    say("\nTime")
    for name, seconds in times:
        say(f"  {seconds:5.0f} s  {name}")
    say(
        "\nTry next\n"
        "  make demo                                  again: nothing changes, the model trains once more\n"
        "  scripts/demo status                        what runs on which node\n"
        "  make demo-shell HOST=edge1                 then: su - analyst; tfos-submit --help\n"
        "  .venv/bin/ansible-playbook -i inventories/demo playbooks/verify.yml\n"
        f"  YARN: http://{cluster.addresses['master1']}:8088   HDFS: http://{cluster.addresses['master1']}:9870\n"
        "  make demo-down                             removes all of it"
    )
