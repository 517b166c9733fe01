"""The demo's hosts for measurements: playbooks on them, and light containers of a data node, which has no Hadoop services then."""

import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import yaml

from hadoop_dl_dev.demo import cluster as demo
from hadoop_dl_dev.demo import images, nodes
from hadoop_dl_dev.demo.shell import DemoError, output, phase, run
from hadoop_dl_dev.demo.tour import BIN, ENVIRONMENT

IMAGE = "hadoop-deeplearning/bench:latest"
LABEL = "light"
LONGEST = 3600  # seconds of one playbook


def cluster() -> demo.Cluster:
    """The demo's cluster, with the platform on data1."""
    base = demo.recorded(demo.DEFAULT_NAME)
    node = base.container("data1")
    if nodes.state(node) != "running":
        raise DemoError(f"{node} must run, but does not. Run make demo first.")
    if not nodes.succeeds(node, "test", "-e", "/opt/deeplearning/current"):
        raise DemoError("data1 must have the platform, but does not. Run make demo first.")
    return base


def play(inventory: Path, playbook: str, control: Path) -> str:
    """Run a playbook and return its output. control: a directory for the connections of ssh."""
    environment = {**ENVIRONMENT, "ANSIBLE_SSH_CONTROL_PATH_DIR": str(control)}
    command = (str(BIN / "ansible-playbook"), "-i", str(inventory), str(images.REPOSITORY / playbook))
    done = run(*command, env=environment, timeout=LONGEST, check=False)
    if done.returncode:
        raise DemoError(f"{playbook} ended with status {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    return done.stdout + done.stderr


def close_connections(control: Path) -> None:
    for socket in control.iterdir() if control.exists() else []:
        run("ssh", "-O", "exit", "-o", f"ControlPath={socket}", "none", check=False)


@contextmanager
def light_containers(base: demo.Cluster, count: int) -> Iterator[dict[str, str]]:
    """Names and addresses of `count` light containers of data1 in the demo's network; removed at the end."""
    source = base.container("data1")
    try:
        with phase(f"{count} light containers from {source}"):
            make_image(source)
            hosts = start(count, base)
        yield hosts
    finally:
        nodes.remove(*demo.existing(LABEL))
        run("docker", "image", "rm", IMAGE, check=False)


def make_image(source: str) -> None:
    """The data node as it is on disk; its daemons stay out."""
    raw = output("docker", "commit", source)
    mask = "RUN systemctl disable hdfs-datanode yarn-nodemanager && rm -rf /var/cache/ansible-bytecode\n"
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "Dockerfile").write_text(f"FROM {raw}\n{mask}", encoding="utf-8")
        images.docker_build(IMAGE, directory)


def start(count: int, base: demo.Cluster) -> dict[str, str]:
    names = [f"{LABEL}-{number}" for number in range(1, count + 1)]
    os.environ[f"NODE_IMAGE_{base.image.upper()}"] = IMAGE

    def start_one(name: str) -> None:
        options = nodes.options_of(name, base.name, hosts=base.addresses, labels={nodes.LABEL: LABEL})
        nodes.start(name, base.image, options)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(start_one, names))
    template = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
    return {name: nodes.inspect(name, template) or "" for name in names}


def write_inventory(directory: Path, hosts: dict[str, str], base: demo.Cluster) -> None:
    """The demo's site with these hosts as its data nodes, without the mirror's host and the ResourceManager's.

    What is written of data1 holds for each of them.
    """
    directory.mkdir()
    groups = yaml.safe_load((base.inventory / "hosts.yml").read_text(encoding="utf-8"))["all"]["children"]
    data_nodes = groups["data_nodes"]
    variables = yaml.safe_load((base.inventory / "group_vars" / "all.yml").read_text(encoding="utf-8"))
    known_hosts = directory / "known_hosts"
    known_hosts.write_text("".join(nodes.host_key(name, at) for name, at in hosts.items()), encoding="utf-8")
    variables["ansible_ssh_common_args"] = f"-o UserKnownHostsFile={known_hosts}"
    variables |= {"mirror_mode": "external", "yarn_gpu": False}
    data_nodes["hosts"] = {name: {**data_nodes["hosts"]["data1"], "ansible_host": at} for name, at in hosts.items()}
    content = {"all": {"vars": variables, "children": {"data_nodes": data_nodes}}}
    (directory / "hosts.yml").write_text(yaml.safe_dump(content), encoding="utf-8")
