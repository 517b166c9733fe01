"""What the demo needs of this machine: everything is looked at first, and what is missing is said at once."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import time
from pathlib import Path

from hadoop_dl.demo.images import REPOSITORY
from hadoop_dl.demo.shell import DemoError, run, say

MEMORY_MB = 10_000  # HDFS, YARN and Kafka take 4 GB, a training job 4 GB
DISK_MB = 15_000  # images 3 GB, environments on three nodes 8 GB, mirror 1 GB
# The command that shows the package is there, and its name in Debian and Ubuntu.
COMMANDS = {
    "docker": "docker.io",
    "iptables": "iptables",
    "mmdebstrap": "mmdebstrap",
    "rpmbuild": "rpm",
    "createrepo_c": "createrepo-c",
    "gpg": "gnupg",
    "ssh": "openssh-client",
}
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def available_memory_mb() -> int:
    for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return 0


def missing_packages() -> list[str]:
    found = [
        package
        for command, package in COMMANDS.items()
        if shutil.which(command) is None and not Path("/usr/sbin", command).exists()
    ]
    return found + ([] if KEYRING.exists() else ["debian-archive-keyring"])


def problems(root: bool, packages: list[str], memory_mb: int, disk_mb: int, apt: bool, machine: str) -> list[str]:
    """Why the demo cannot run here; an empty list means that it can."""
    found = []
    if machine != "x86_64":
        found.append(f"An x86_64 machine is needed, and this is {machine}: TensorFlow's wheels are for x86_64.")
    if memory_mb < MEMORY_MB:
        found.append(
            f"{MEMORY_MB} MB of free memory are needed, and there are {memory_mb}. End something, or use a larger machine."
        )
    if disk_mb < DISK_MB:
        found.append(f"{DISK_MB} MB of free disk are needed in {REPOSITORY}, and there are {disk_mb}. Make room.")
    if not root:
        found.append(
            "root is needed (to make images with mmdebstrap and, where they are missing, to install packages). Run it with sudo."
        )
    if packages and not apt:
        found.append(
            f"The packages {' '.join(packages)} are needed, and there is no apt-get to install them. Install them by hand."
        )
    return found


def ensure() -> None:
    """Check, install the packages that are missing, and see that a Docker engine answers."""
    packages = missing_packages()
    found = problems(
        root=os.geteuid() == 0,
        packages=packages,
        memory_mb=available_memory_mb(),
        disk_mb=shutil.disk_usage(REPOSITORY).free // 2**20,
        apt=shutil.which("apt-get") is not None,
        machine=platform.machine(),
    )
    if found:
        raise DemoError("this machine does not do yet:\n" + "\n".join(f"  - {problem}" for problem in found))
    if packages:
        say(f"    installing {' '.join(packages)} …")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        run("apt-get", "-qq", "update", env=environment)
        run("apt-get", "-qq", "-y", "--no-install-recommends", "install", *packages, env=environment)
    start_engine()


def engine_answers() -> bool:
    return run("docker", "info", check=False).returncode == 0


def start_engine() -> None:
    """Start dockerd where nobody did: by systemd, or by hand where there is no init system."""
    if engine_answers():
        return
    say("    starting the Docker engine …")
    if Path("/run/systemd/system").is_dir():
        run("systemctl", "start", "docker", check=False)
    else:
        log = REPOSITORY / ".cache" / "dockerd.log"
        log.parent.mkdir(exist_ok=True)
        Path("/var/run/docker.pid").unlink(missing_ok=True)
        with log.open("ab") as handle:
            subprocess.Popen(
                ["dockerd"], stdin=subprocess.DEVNULL, stdout=handle, stderr=handle, start_new_session=True
            )
    for _ in range(60):
        if engine_answers():
            return
        time.sleep(1)
    raise DemoError(
        "a Docker engine is needed, and none answers within 60 seconds. Look into .cache/dockerd.log or journalctl -u docker."
    )
