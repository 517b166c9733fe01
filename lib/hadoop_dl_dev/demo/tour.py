"""make demo: the whole way of a newcomer, from nothing to a model trained on YARN, with the time of every phase."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hadoop_dl.data import stacks
from hadoop_dl_dev.demo import images, kerberos, nodes, workbench
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
    play(cluster, times, "site.yml")
    with phase("A training job on YARN", times):
        result = train(cluster)
    session = use_workbench(cluster, times) if cluster.cdsw else []
    summary(cluster, times, result, session)
    return 0


def play(cluster: Cluster, times: list[tuple[str, float]], playbook: str, *options: str) -> None:
    """A playbook as one phase, on this terminal."""
    with phase(" ".join(["ansible-playbook -i inventories/demo", playbook, *options]), times):
        command = [str(BIN / "ansible-playbook"), "-i", str(cluster.inventory), str(images.REPOSITORY / playbook)]
        status = follow([*command, *options], env=ENVIRONMENT)
        if status:
            raise DemoError(
                f"{playbook} ended with status {status}; its last lines say where. Repeat make demo once the cause is gone."
            )


def use_workbench(cluster: Cluster, times: list[tuple[str, float]]) -> list[str]:
    """The steps of docs/operate/cdsw.md after site.yml: the switch, an engine image, a session. Returns what the session answered."""
    host = workbench.Host(cluster.container(workbench.NAME))
    switch = ("playbooks/cdsw.yml", "-e", "cdsw_restart_allowed=true")
    play(cluster, times, *switch)
    if host.enter_settings(cluster.cdsw):
        say(
            "    What is printed above as left to do in Cloudera Manager is done: the settings, and the restart of the service."
        )
        play(cluster, times, *switch)
    play(cluster, times, "playbooks/cdsw_engine.yml")
    with phase(f"A session on {workbench.NAME}", times):
        image = host.active_image()
        host.session(image)
        say(f"    python: {workbench.PRODUCT}")
        product = host.python(workbench.PRODUCT)
        say(f"    {product}")
        say("    gpu-check")
        answers = host.gpu_check()
        for name, (outcome, message) in answers.items():
            if outcome != "SKIP":
                say(f"    {outcome}  {name}: {message}")
    failures = [name for name, (outcome, _) in answers.items() if outcome == "FAIL"]
    if set(failures) != set(workbench.OF_A_GPU):
        raise DemoError(
            f"gpu-check must fail in a session of the demo at {', '.join(workbench.OF_A_GPU)}, but it fails at {', '.join(failures) or 'none'}. "
            f"Its sentences are above. Look: docker exec {host.node} docker exec {workbench.ENGINE} gpu-check"
        )
    pass_count = sum(outcome == "PASS" for outcome, _ in answers.values())
    return [
        f"image {image}",
        f"uid, TensorFlow, [[2.]] x [[3.]] on the CPU: {product}",
        f"gpu-check: {pass_count} passed, {len(failures)} failed, because only a GPU can answer them: {', '.join(failures)}",
    ]


def train(cluster: Cluster, mode: str = "spark", variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Submit examples/digits as the user analyst on the edge node; returns the job's own result. variables: of run.sh."""
    edge = cluster.container("edge1")
    digits = images.REPOSITORY / "examples" / "digits"
    nodes.execute(edge, "rm", "-rf", "/home/analyst/digits")
    output("docker", "cp", str(digits), f"{edge}:/home/analyst/digits")
    nodes.execute(edge, "chown", "-R", "analyst:", "/home/analyst/digits")
    if cluster.kerberos:
        kerberos.log_in(cluster)
    pairs = [part for name, value in (variables or {}).items() for part in ("--env", f"{name}={value}")]
    place = ("--user", "analyst", "--workdir", "/home/analyst/digits")
    status = follow(["docker", "exec", *pairs, *place, edge, "sh", "run.sh", mode])
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
            ("HADOOP", cluster.hadoop, ""),
            ("KERBEROS", "1" if cluster.kerberos else "", ""),
            ("STACK", cluster.stack, default.stack),
            ("DATA_NODES", cluster.data_nodes, default.data_nodes),
            ("GPU_NODES", cluster.gpu_nodes, default.gpu_nodes),
            ("CDSW", "1" if cluster.cdsw == workbench.KINDS[0] else cluster.cdsw, default.cdsw),
        )
        if value != usual
    )
    inventory = os.path.relpath(cluster.inventory, images.REPOSITORY)
    on_edge = ("su - analyst", "deeplearning list", "tfos-submit jobs", "tfos-submit --help")
    if cluster.name == default.name:
        rerun, status, shell, down = (
            f"make demo{choices}",
            "scripts/demo status",
            "make demo-shell HOST=edge1",
            "make demo-down",
        )
    else:  # the make targets are for the cluster with the default name
        name = f"--name {cluster.name}"
        rerun = f"scripts/demo run {name} --stack {cluster.stack} --data-nodes {cluster.data_nodes}"
        rerun += f" --cdsw {cluster.cdsw}" if cluster.cdsw else ""
        rerun += " --kerberos" if cluster.kerberos else ""
        rerun += f" --hadoop {cluster.hadoop}" if cluster.hadoop else ""
        rerun += "" if cluster.gpu_nodes is None else f" --gpu-nodes {cluster.gpu_nodes}"
        status, shell, down = (
            f"scripts/demo status {name}",
            f"scripts/demo shell {name} edge1",
            f"scripts/demo down {name}",
        )
    in_session = (f"docker exec {workbench.ENGINE} gpu-check", "cdsw status")
    of_cdsw = Suggestion(shell.replace("edge1", workbench.NAME), "then: " + "; ".join(in_session), in_session)
    return [
        Suggestion(rerun, "again: nothing changes, the model trains once more"),
        Suggestion(status, "what runs on which node"),
        Suggestion(shell, "then: " + "; ".join(on_edge), on_edge),
        *([of_cdsw] if cluster.cdsw else []),
        Suggestion(f".venv/bin/ansible-playbook -i {inventory} playbooks/verify.yml", "check every host"),
        Suggestion(down, "removes all of it"),
    ]


def web_pages(cluster: Cluster) -> dict[str, str]:
    master = cluster.addresses["master1"]
    return {"YARN": f"http://{master}:8088", "HDFS": f"http://{master}:9870"}


def installed_versions(stack: Mapping[str, Any], python: str) -> str:
    """The versions in the environment; a stack may have several Pythons."""
    parts = ("tensorflow", "keras", "tensorflowonspark", "pyspark", "tensorflow_io")
    return ", ".join([f"python {python}", *(f"{part} {stack[part]}" for part in parts if part in stack)])


def summary(
    cluster: Cluster, times: list[tuple[str, float]], result: dict[str, Any], session: Sequence[str] = ()
) -> None:
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
    if session:
        say(f"\nThe session of CDSW {cluster.cdsw} on {workbench.NAME}")
        for line in session:
            say(f"  {line}")
    say("\nTime")
    for name, seconds in times:
        say(f"  {seconds:5.0f} s  {name}")
    say("\nTry next")
    for suggestion in suggestions(cluster):
        say(f"  {suggestion.command:<42} {suggestion.meaning}".rstrip())
    say("  " + "   ".join(f"{name}: {address}" for name, address in web_pages(cluster).items()))
    say("  docs/train/first_hour.md goes on from there, as a data scientist")
