"""A node for the environments of one image: the mirror and Pythons mounted, HDFS and Kafka running on it alone."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hadoop_dl.data import stacks
from hadoop_dl_dev.demo import images, nodes, services
from hadoop_dl_dev.demo.shell import DemoError, output, run
from hadoop_dl_dev.tested import all_locks

REPOSITORY = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
MIRROR = REPOSITORY / ".cache" / "mirror"
MIRROR_URL = "http://127.0.0.1:8000"
ROOT = "/opt/deeplearning"
# By their C libraries: an older system's lock may be tried on a newer one, never the other way round.
NEWER = ("el7", "el8", "el9", "el7-hadoop2", "el10")
OF_IMAGE = {
    "el7": ("2.7",),
    "el7-hadoop2": ("2.7",),
    "el8": ("3.11",),
    "el9": ("3.11",),
    "el10": ("3.13",),
}  # the Pythons that images have themselves


def on_this_machine(version: str) -> Path | None:
    """A Python that this machine has (pyenv, uv) or that uv can install; None if there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for path in sorted(pyenv.glob(f"{version}.*/bin/python{version}")):
        return path
    uv = Path(sys.executable).parent / "uv"
    find = [str(uv), "python", "find", "--managed-python", version]
    for command in ([*find, "--offline"], [str(uv), "python", "install", version], find):
        try:
            completed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if "find" in command and completed.returncode == 0:
            return Path(completed.stdout.strip()).resolve()
    return None


def borrowed() -> dict[str, Path]:
    """version -> interpreter, for the Pythons that locks need and some image lacks."""
    versions = sorted({python for _, python in all_locks() if any(python not in own for own in OF_IMAGE.values())})
    paths = {version: on_this_machine(version) for version in versions if version != "2.7"}
    return {version: path for version, path in paths.items() if path}


@dataclass
class Node:
    """One container; every command has a time limit."""

    image: str
    pythons: dict[str, Path]
    requested: Sequence[str] = ()  # the images of the run: a lock may try another one, which a run beside this one uses
    site: Path = REPOSITORY / ".cache" / "test"  # of its inventory, with the site's own stacks
    started: bool = False
    serves: bool = False

    @property
    def name(self) -> str:
        return "-".join(("stacks", *self.requested, self.image))

    def start(self) -> None:
        mounts = [f"{MIRROR}:/srv/mirror:ro", f"{REPOSITORY / 'examples' / 'digits'}:/srv/digits:ro"]
        mounts += [f"{HERE}:/srv/stacks:ro"]
        mounts += [f"{path.parents[1]}:{path.parents[1]}:ro" for path in self.pythons.values()]
        MIRROR.mkdir(parents=True, exist_ok=True)
        # The images' Hadoop and Kafka know the cluster's host names; here one host is all of them.
        options = nodes.options_of(self.name, hostname="master1", hosts={"edge1": "127.0.0.1"}, mounts=mounts)
        nodes.remove(self.name)
        nodes.start(self.name, self.image, options)
        self.started = True
        # As on a host whose users run the interpreter: pyenv's may be below root's home, which only root can enter.
        parents = {str(parent) for path in self.pythons.values() for parent in path.parents[2:-1]}
        nodes.execute(self.name, "chmod", "o+x", "/", *sorted(parents))
        serve = ["systemd-run", "--unit", "mirror", "/usr/bin/python3", "-m", "http.server", "8000"]
        nodes.execute(self.name, *serve, "--directory", "/srv/mirror")

    def start_services(self) -> None:
        """HDFS and Kafka; once."""
        if self.serves:
            return
        nodes.execute(self.name, "systemctl", "start", "hdfs-namenode", "hdfs-datanode", "kafka")
        template = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        address = output("docker", "inspect", "--format", template, self.name)
        cluster = SimpleNamespace(kerberos=False, data_nodes=1, addresses={"master1": address})
        services.until("HDFS", lambda: services.hdfs_problem(cluster))
        services.until("Kafka", lambda: services.kafka_problem(address))
        self.serves = True

    def stop(self) -> None:
        nodes.remove(self.name)
        self.started = self.serves = False

    def interpreter(self, version: str) -> str:
        """The path of that Python on the node; a DemoError says why there is none."""
        is_of_image = version in OF_IMAGE[self.image]
        path = Path(f"/usr/bin/python{version}") if is_of_image else self.pythons.get(version)
        if path is None:
            raise DemoError(f"Python {version} is not in the image {self.image}, and neither pyenv nor uv has it here.")
        completed = run(
            "docker", "exec", self.name, str(path), "-c", "import ssl, ctypes, zlib", check=False, timeout=60
        )
        if completed.returncode:
            reason = (completed.stderr.strip().splitlines() or ["no word"])[-1].split(": ", 1)[-1]
            raise DemoError(f"This machine's Python {version} does not start on the image {self.image} ({reason}).")
        return str(path)

    def play(self, playbook: Path, variables: Mapping[str, Any], timeout: float = 1800) -> None:
        """Run a playbook on the node; a DemoError has its last words."""
        python = "/usr/bin/python2.7" if "2.7" in OF_IMAGE[self.image] else "/usr/bin/python3"
        host = {"ansible_connection": "community.docker.docker", "ansible_python_interpreter": python}
        group = {"hosts": {self.name: {**host, "ansible_become": False}}}
        inventory = self.site / f"{self.name}.json"
        inventory.parent.mkdir(parents=True, exist_ok=True)
        inventory.write_text(json.dumps({"all": {"children": {"needs_environment": group}}}), encoding="utf-8")
        command = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", str(inventory), str(playbook)]
        environment = {**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
        run(*command, "-e", json.dumps(dict(variables)), env=environment, timeout=timeout)

    def install(self, stack: stacks.Stack, python: str, path: str) -> None:
        """Install and seal the environment of a lock whose artifacts are in the mirror."""
        plan = {
            "stack": stack.data,
            "python": python,
            "interpreter": self.interpreter(python),
            "environment": path.rpartition("/")[2],
            "parts": stack.lock(python).components,
            "mirror_environments": [[stack.name, python]],
        }
        variables = {"plan": plan, "mirror_url": MIRROR_URL}
        if not stack.imports_without_cuda:
            variables["environment_imports"] = []  # the node has no CUDA, and no driver
        self.play(REPOSITORY / "playbooks" / "layers" / "frameworks.yml", variables)

    def ask(self, command: Sequence[str], variables: Mapping[str, str] | None = None, timeout: float = 600) -> str:
        """Run a command as a user with the Hadoop environment would; its output, or an AssertionError with its last words."""
        environment = {"HADOOP_USER_NAME": "hdfs", "TF_CPP_MIN_LOG_LEVEL": "1", **(variables or {})}
        pairs = [part for name, value in environment.items() for part in ("--env", f"{name}={value}")]
        script = f'[ ! -e {ROOT}/etc/hadoop-env.sh ] || . {ROOT}/etc/hadoop-env.sh; exec timeout {timeout:.0f} "$@"'
        argv = ["docker", "exec", *pairs, self.name, "sh", "-c", script, "sh", *command]
        completed = run(*argv, check=False, timeout=timeout + 60)
        assert completed.returncode == 0, (
            f"status {completed.returncode}: {last_words(completed.stdout, completed.stderr)}"
        )
        return completed.stdout


def last_words(stdout: str, stderr: str) -> str:
    """The line that says what went wrong: the last one that names an error, else the last one."""
    lines = [line.strip() for line in (stdout + "\n" + stderr).splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line and not line.startswith("at ")]
    return (errors or lines or ["no word"])[-1][:300]


def images_of(stack: stacks.Stack) -> list[str]:
    """The images to try, from the stack's first system on; those with a Java for its Spark come first."""
    first = next(number for number, name in enumerate(NEWER) if name in stack.data["os"])
    javas = stack.data.get("java", [])
    return sorted(NEWER[first:], key=lambda name: images.java(name) not in javas)
