"""Bare hosts over SSH for faults of a whole run of site.yml: no Hadoop runs, and each host serves the mirror to itself.

The stack is the smallest one (TensorFlow 1.4, 99 MB), so that a run takes seconds. Only the plays that need Hadoop's services are left out: verify.
"""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ansible_programs
import other_processes

from hadoop_dl.cli import mirror
from hadoop_dl.data import stacks
from hadoop_dl_dev.demo import nodes
from hadoop_dl_dev.demo.cluster import wait_for_sshd
from hadoop_dl_dev.demo.shell import output, run

REPOSITORY = Path(__file__).resolve().parents[2]
MIRROR = REPOSITORY / ".cache" / "mirror"
STACK = "tf1.4-cpu-py27-el7"
IMAGE = "el7"
RUN_SECONDS = 1200
ENVIRONMENT = f"{STACK}-{stacks.load_stack(STACK).lock().digest}"
PATH = f"/opt/deeplearning/envs/{ENVIRONMENT}"
TREE = re.compile(re.escape(ENVIRONMENT) + r"\.\d+")

# One line for each file, directory and link of a directory: kind, mode, owner, size, sha256 or target, path.
LIST = r"""
import hashlib, os, re, stat, sys
root = sys.argv[1]
for top, directories, files in os.walk(root):
    for name in sorted(directories + files):
        path = os.path.join(top, name)
        status = os.lstat(path)
        size, content = status.st_size, ""
        if stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        elif stat.S_ISREG(status.st_mode):
            data = open(path, "rb").read()
            if name.endswith(".pyc"):
                data = data[8:]  # after its version, the time of its source
            if name == "sealed.json":
                data = re.sub(b'"(tree|files)_sha256": "[0-9a-f]+"', b"", data)
            content = hashlib.sha256(data).hexdigest()
        else:
            size = 0  # of a directory, the file system's own affair
        owner = "%d:%d" % (status.st_uid, status.st_gid)
        print(stat.filemode(status.st_mode), owner, size, content, os.path.relpath(path, root))
"""
# What differs between two installations that are the same: lists with the times of files, when it was switched, and the lock's last holder.
OF_ONE_INSTALLATION = re.compile(
    r" (envs/\S+/\.deeplearning/(tree\.txt|files\.txt)|envs/\S+\.client/CURRENT\.txt|\.lock)$"
)
# Written by the system while it runs, and by Ansible, whose working directories a killed run leaves.
OF_THE_SYSTEM = re.compile(
    r"^. (/run|/tmp|/var/tmp|/var/log|/var/lib/systemd|/var/lib/private|/home/deploy/\.ansible|/root/\.ansible)(/|$)"
)


class Hosts:
    """Containers of one group, and the runs of site.yml on them."""

    group = "data_nodes"
    options: tuple[str, ...] = ()  # of docker run, beside those of every node
    mounts: tuple[str, ...] = ()  # as docker takes them, beside the mirror's
    skipped: tuple[str, ...] = ("--skip-tags", "verify")

    def __init__(self, prefix: str, names: tuple[str, ...], directory: Path) -> None:
        """directory: for the key, the inventory and the SSH masters; its path is short, because a socket's is limited."""
        self.prefix, self.names, self.directory = prefix, names, directory
        self.tree = REPOSITORY  # whose playbooks run
        self.variables: dict[str, Any] = {}  # of the group, beside those of every bare host

    def container(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def start(self) -> None:
        mirror.fetch_artifacts(stacks.load_stack(STACK).artifacts(), MIRROR)
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.directory / "key"))
        for name in self.names:
            self.start_host(name)
        self.write_inventory(*self.names)

    def start_host(self, name: str) -> None:
        """An empty host, in the place of the one of that name."""
        container = self.container(name)
        nodes.remove(container)
        options = nodes.options_of(container, hostname=name, mounts=[f"{MIRROR}:/srv/mirror:ro", *self.mounts])
        nodes.start(container, IMAGE, [*options, *self.options])
        serve = ["systemd-run", "--unit", "mirror", "/usr/bin/python3", "-m", "http.server", "8000"]
        nodes.execute(container, *serve, "--directory", "/srv/mirror")
        home = "install -d -m 700 -o deploy -g deploy /home/deploy/.ssh && cat > /home/deploy/.ssh/authorized_keys"
        admit = ["docker", "exec", "--interactive", container, "sh", "-c", home]
        run(*admit, stdin=(self.directory / "key.pub").read_text())
        wait_for_sshd(self.address(name))

    def address(self, name: str) -> str:
        template = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        return output("docker", "inspect", "--format", template, self.container(name))

    def write_inventory(self, *names: str) -> None:
        """These hosts, and their keys, as playbooks/bootstrap_ssh.yml has it."""
        host_keys, hosts = [], {}
        for name in names:
            address = self.address(name)
            host_keys.append(nodes.host_key(self.container(name), address))
            hosts[name] = {"ansible_host": address}
        (self.directory / "known_hosts").write_text("".join(host_keys))
        variables = {
            "deeplearning_request": STACK,
            "mirror_mode": "external",
            "mirror_url": "http://127.0.0.1:8000",
            "gpu_count": 0,
            "ansible_python_interpreter": "/usr/bin/python2.7",
            "ansible_user": "deploy",
            "ansible_ssh_private_key_file": str(self.directory / "key"),
            "ansible_ssh_common_args": f"-o UserKnownHostsFile={self.directory / 'known_hosts'}",
        }
        inventory = {"all": {"children": {self.group: {"hosts": hosts, "vars": {**variables, **self.variables}}}}}
        (self.directory / "inventory.json").write_text(json.dumps(inventory))

    @contextmanager
    def running(self) -> Iterator["Hosts"]:
        """The hosts from their start to their removal."""
        try:
            self.start()
            yield self
        finally:
            self.close_connections()
            self.remove()

    def remove(self) -> None:
        nodes.remove(*(self.container(name) for name in self.names))

    def shell(self, name: str, command: str, check: bool = True) -> str:
        return nodes.execute(self.container(name), "sh", "-c", command, check=check)

    def start_site(self, *arguments: str) -> subprocess.Popen[str]:
        return self.start_play("site.yml", *arguments)

    def start_play(self, *arguments: str) -> subprocess.Popen[str]:
        """A playbook with SSH masters of its own, so that all of it can be killed."""
        variables = {"PYTHONPATH": str(self.tree / "lib"), "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.directory / "cp")}
        inventory = self.directory / "inventory.json"
        return ansible_programs.start("-i", inventory, *self.skipped, *arguments, cwd=self.tree, **variables)

    def finish(self, process: subprocess.Popen[str], seconds: float = RUN_SECONDS) -> tuple[int, str]:
        try:
            text, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill_controller(process)
            raise
        return process.returncode, text

    def site(self, *arguments: str) -> str:
        return self.play("site.yml", *arguments)

    def play(self, *arguments: str) -> str:
        """A run that must succeed; what it printed."""
        code, text = self.finish(self.start_play(*arguments))
        assert code == 0, text[-6000:]
        return text

    def kill_controller(self, process: subprocess.Popen[str]) -> None:
        """As a power cut on the controller: the whole session, and the SSH masters that would outlive it."""
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        self.close_connections()

    def close_connections(self) -> None:
        """SSH masters stay for the next run; that to a host which is replaced would wait for the old one."""
        other_processes.kill(str(self.directory / "cp"))

    def kill_on_host(self, name: str) -> list[str]:
        """SIGKILL for everything that came in by SSH, with its children; what it was."""
        table = [line.split(None, 2) for line in self.shell(name, "ps -e -o pid= -o ppid= -o args=").splitlines()]
        pids = {pid for pid, _, words in table if words.startswith("sshd: deploy")}
        sessions = set(pids)
        while more := {pid for pid, parent, _ in table if parent in pids} - pids:
            pids |= more
        victims = sorted(pids - sessions, key=int)
        if victims:
            self.shell(name, f"kill -KILL {' '.join(victims)}", check=False)
        return [words for pid, _, words in table if pid in victims]

    def content(self, name: str) -> set[str]:
        """Everything below /opt/deeplearning, and the names of everything else that differs from the image."""
        argv = ["docker", "exec", "--interactive", self.container(name), "/usr/bin/python3", "-", "/opt/deeplearning"]
        files = {line for line in run(*argv, stdin=LIST).stdout.splitlines() if not OF_ONE_INSTALLATION.search(line)}
        lines = output("docker", "diff", self.container(name)).splitlines()
        return files | {line for line in lines if not OF_THE_SYSTEM.search(line) and "/opt/deeplearning/" not in line}
