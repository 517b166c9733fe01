"""make demo: the whole way of a newcomer, from nothing to a model trained on YARN, with the time of every phase."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hadoop_dl.data import stacks
from hadoop_dl_dev.demo import images, nodes
from hadoop_dl_dev.demo.cluster import Cluster
from hadoop_dl_dev.demo.shell import DemoError, follow, output, phase, run, say

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


@dataclass(frozen=True)
class Suggestion:
    """A command that a newcomer may type next. `typed`: what to type in the shell that it opens, line by line."""

    command: str
    meaning: str
    typed: tuple[str, ...] = ()


def suggestions(cluster: Cluster) -> list[Suggestion]:
    """The commands that the summary prints. tests/e2e/test_printed_commands.py runs every one of them."""
    default = Cluster()
    choices = "".join(
        f" {name}={value}"
        for name, value, usual in (
            ("STACK", cluster.stack, default.stack),
            ("DATA_NODES", cluster.data_nodes, default.data_nodes),
        )
        if value != usual
    )
    inventory = os.path.relpath(cluster.inventory, images.REPOSITORY)
    on_edge = ("su - analyst", "tfos-submit --help")
    if cluster.name == default.name:
        again, status, shell, down = (
            f"make demo{choices}",
            "scripts/demo status",
            "make demo-shell HOST=edge1",
            "make demo-down",
        )
    else:  # the make targets are for the cluster with the default name
        name = f"--name {cluster.name}"
        again = f"scripts/demo run {name} --stack {cluster.stack} --data-nodes {cluster.data_nodes}"
        status, shell, down = (
            f"scripts/demo status {name}",
            f"scripts/demo shell {name} edge1",
            f"scripts/demo down {name}",
        )
    return [
        Suggestion(again, "again: nothing changes, the model trains once more"),
        Suggestion(status, "what runs on which node"),
        Suggestion(shell, "then: " + "; ".join(on_edge), on_edge),
        Suggestion(f".venv/bin/ansible-playbook -i {inventory} playbooks/verify.yml", "check every host"),
        Suggestion(down, "removes all of it"),
    ]


def web_pages(cluster: Cluster) -> dict[str, str]:
    master = cluster.addresses["master1"]
    return {"YARN": f"http://{master}:8088", "HDFS": f"http://{master}:9870"}


def installed_versions(stack: Mapping[str, Any], python: str) -> str:
    """What the environment holds, of a stack that may be made for several Pythons."""
    parts = ("tensorflow", "keras", "tensorflowonspark", "pyspark", "tensorflow_io")
    return ", ".join([f"python {python}", *(f"{part} {stack[part]}" for part in parts if part in stack)])


def summary(cluster: Cluster, times: list[tuple[str, float]], result: dict[str, Any]) -> None:
    stack = stacks.load_stack(cluster.stack).data
    say("\nWhat is where")
    for host in cluster.hosts:
        current = nodes.execute(cluster.container(host), "readlink", "/opt/deeplearning/current", check=False).strip()
        say(f"  {host:<8} {cluster.addresses[host]:<14} {current.rpartition('/')[2] or '-'}")
    question = "import sys; print('%d.%d' % sys.version_info[:2])"
    python = nodes.execute(cluster.container("edge1"), "/opt/deeplearning/current/bin/python", "-c", question).strip()
    say(f"  {cluster.stack}: {installed_versions(stack, python)}")
    say(
        f"\nThe job: accuracy {result['accuracy']:.3f} on held-out digits, {result.get('executors', '?')} executors, {result.get('seconds', '?')} s"
    )
    say("\nTime")
    for name, seconds in times:
        say(f"  {seconds:5.0f} s  {name}")
    say("\nTry next")
    for suggestion in suggestions(cluster):
        say(f"  {suggestion.command:<42} {suggestion.meaning}".rstrip())
    say("  " + "   ".join(f"{name}: {address}" for name, address in web_pages(cluster).items()))
