"""Light containers made from a data node of the demo cluster: its file system without its Hadoop services."""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from hadoop_dl_dev.demo import cluster as demo
from hadoop_dl_dev.demo import nodes
from hadoop_dl_dev.demo.shell import output, run

IMAGE = "hadoop-deeplearning/bench:latest"
LABEL = "light"


def make_image(source: str) -> None:
    """The data node as it is on disk; its daemons stay out."""
    raw = output("docker", "commit", source)
    mask = "RUN systemctl disable hdfs-datanode yarn-nodemanager && rm -rf /var/cache/ansible-bytecode\n"
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "Dockerfile").write_text(f"FROM {raw}\n{mask}", encoding="utf-8")
        run(
            *("docker", "build", "--network", "none", "--tag", IMAGE, directory),
            env={**os.environ, "DOCKER_BUILDKIT": "0"},
        )


def start(count: int, base: demo.Cluster) -> dict[str, str]:
    """Names and addresses of `count` light containers in the demo's network."""
    names = [f"{LABEL}-{number}" for number in range(1, count + 1)]
    os.environ[f"NODE_IMAGE_{base.image.upper()}"] = IMAGE
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda name: nodes.start(
                    name,
                    base.image,
                    nodes.options_of(name, base.name, hosts=base.addresses, labels={nodes.LABEL: LABEL}),
                ),
                names,
            )
        )
    shown = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
    return {name: output("docker", "inspect", "--format", shown, name) for name in names}


def write_inventory(directory: Path, hosts: dict[str, str], base: demo.Cluster) -> None:
    """The demo's site with these hosts as its data nodes, without the mirror's host and the ResourceManager's.

    What is written of data1 holds for each of them.
    """
    data_nodes = yaml.safe_load((base.inventory / "hosts.yml").read_text(encoding="utf-8"))["all"]["children"][
        "data_nodes"
    ]
    variables = yaml.safe_load((base.inventory / "group_vars" / "all.yml").read_text(encoding="utf-8"))
    known = "".join(
        f"{address} {' '.join(nodes.execute(name, 'cat', '/etc/ssh/ssh_host_ed25519_key.pub').split()[:2])}\n"
        for name, address in hosts.items()
    )
    (directory / "known_hosts").write_text(known, encoding="utf-8")
    variables["ansible_ssh_common_args"] = f"-o UserKnownHostsFile={directory / 'known_hosts'}"
    variables |= {"mirror_mode": "external", "yarn_gpu": False}
    data_nodes["hosts"] = {
        name: {**data_nodes["hosts"]["data1"], "ansible_host": address} for name, address in hosts.items()
    }
    content = {"all": {"vars": variables, "children": {"data_nodes": data_nodes}}}
    (directory / "hosts.yml").write_text(yaml.safe_dump(content), encoding="utf-8")


def remove() -> None:
    nodes.remove(*demo.existing(LABEL))
    run("docker", "image", "rm", IMAGE, check=False)
