"""One node that is mirror, build host and data node at once, and the playbooks on it; for the tests of building TensorFlow."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ansible_programs
import yaml
from waiting import until

from hadoop_dl_dev.demo import build_site, nodes
from hadoop_dl_dev.demo.build_site import Release

REPOSITORY = Path(__file__).resolve().parents[2]
ROOT = "/var/lib/deeplearning-build"
NONE = dict.fromkeys(("nvidia_driver_version", "cuda_versions", "cudnn_versions", "nccl_versions"), "none")
LIMIT = 240  # seconds for something that a build does


class Site:
    """The node, and an inventory beside stacks of its own."""

    def __init__(self, node: str, directory: Path) -> None:
        self.node, self.directory = node, directory

    def start(self) -> None:
        nodes.remove(self.node)
        nodes.start(self.node, "el7", nodes.options_of(self.node))
        build_site.install_compiler(self.node, "el7")
        build_site.serve(self.node)

    def remove(self) -> None:
        nodes.remove(self.node)

    def request(self, release: Release, **more: Any) -> None:
        """Request the stack of a release; its files come from the node's own server."""
        build_site.write_stack(self.directory / "stacks", release)
        variables = {
            "ansible_connection": "community.docker.docker",
            "ansible_become": False,
            "ansible_python_interpreter": "/usr/bin/python2.7",
            "mirror_mode": "push",
            "mirror_url": "http://127.0.0.1:8900",
            "gpu_count": 0,
            **build_site.variables(release, build_site.DOWNLOADS),
            **NONE,
            **more,
        }
        groups = {group: {"hosts": {self.node: {}}} for group in ("mirror_host", "build_hosts", "data_nodes")}
        inventory = {"all": {"children": groups, "vars": variables}}
        (self.directory / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")

    def begin(self, playbook: str, *arguments: str) -> subprocess.Popen[str]:
        return ansible_programs.start("-i", self.directory, playbook, *arguments)

    @staticmethod
    def end(process: subprocess.Popen[str]) -> tuple[int, str]:
        output, _ = process.communicate(timeout=1200)
        return process.returncode, output

    def play(self, playbook: str, *arguments: str) -> tuple[int, str]:
        return self.end(self.begin(playbook, *arguments))

    def record(self, release: Release) -> dict[str, Any]:
        path = self.directory / "stacks/built" / f"{release.stack}.json"
        return json.loads(path.read_text(encoding="utf-8"))

    def shell(self, command: str, *, check: bool = True) -> str:
        return nodes.execute(self.node, "sh", "-c", command, check=check)

    def until(self, what: str, question: Callable[[], bool]) -> None:
        until(question, LIMIT, f"{what} within {LIMIT} s")


def said_once(text: str) -> str:
    """Without the line breaks that Ansible puts into messages."""
    return " ".join(text.split())
