"""What the demo needs of this machine: report everything that is missing at once, and install it.

Standard library only, for any Python 3: make demo runs this before there is a .venv.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from hadoop_dl_dev.demo.shell import DemoError, run, say

REPOSITORY = Path(__file__).resolve().parents[3]
PYTHONS = ((3, 10), (3, 12))
# A first run, and one that finds the cluster up and only trains: HDFS, YARN and Kafka take 4 GB, a training job 4 GB.
MEMORY_MB = {False: 10_000, True: 4_000}
# The engine keeps images (2 GB) and what site.yml installs (3 GB a node); this directory keeps downloads.
ENGINE_DISK_MB = {False: 12_000, True: 2_000}
CDSW_DISK_MB = 8_000  # what its host has more: an engine image in Docker, and its archive
DOWNLOADS_MB = {False: 3_000, True: 500}
# The command that shows the package is there, and its name in Debian and Ubuntu.
COMMANDS = {
    "iptables": "iptables",
    "mmdebstrap": "mmdebstrap",
    "rpmbuild": "rpm",
    "createrepo_c": "createrepo-c",
    "gpg": "gnupg",
    "ssh": "openssh-client",
}
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
ENGINE_ROOT = Path("/var/lib/docker")
ENGINE_PID = Path("/var/run/docker.pid")
LOCAL_ENGINES = ("unix:///var/run/docker.sock", "unix:///run/docker.sock")  # where a dockerd of this machine listens
SYSTEMD = Path("/run/systemd/system")
SYSTEM_COMMANDS = Path("/usr/sbin")  # not on every user's PATH
DPKG_LISTS = Path("/var/lib/dpkg/info")
# The kernel's default of 128 for each user is used up by six nodes: systemd and its services take about 20 in each.
INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_INSTANCES = 1024


@dataclass
class Machine:
    """What this machine has. The defaults are those of a machine that lacks nothing."""

    root: bool = True
    user: str = "root"
    engine: bool = True  # a Docker engine answers this user
    remote_engine: str | None = None  # the address of an engine that is not this machine's own and does not answer
    up: bool = False  # the cluster runs already and holds its memory and disk
    packages: list[str] = field(default_factory=list)  # missing ones
    apt: bool = True
    machine: str = "x86_64"
    python: tuple[int, int] = (3, 11)
    memory_mb: int = 64_000
    inotify_instances: int = INOTIFY_INSTANCES
    disks_mb: dict[str, tuple[int, int]] = field(default_factory=dict)  # directory: needed, free


def problems(machine: Machine) -> list[str]:
    """Why the demo cannot run here; an empty list means that it can."""
    lines = []
    if machine.machine != "x86_64":
        lines.append(
            f"An x86_64 machine is required, but this is {machine.machine}: TensorFlow's wheels are for x86_64."
        )
    if not PYTHONS[0] <= machine.python <= PYTHONS[1]:
        lines.append(
            f"Python 3.10 to 3.12 is required, but this is {machine.python[0]}.{machine.python[1]}. Name another one: make demo PYTHON=python3.11"
        )
    memory_mb = MEMORY_MB[machine.up]
    if machine.memory_mb < memory_mb:
        lines.append(
            f"{memory_mb} MB of free memory are required, but there are {machine.memory_mb}. End something, or use a larger machine."
        )
    for directory, (need, free) in machine.disks_mb.items():
        if free < need:
            lines.append(f"{need} MB of free disk are required in {directory}, but there are {free}. Free some space.")
    if machine.inotify_instances < INOTIFY_INSTANCES and not machine.root:
        lines.append(
            f"fs.inotify.max_user_instances must be {INOTIFY_INSTANCES} or more, or nodes do not boot, but is {machine.inotify_instances}. "
            f"Run: sudo sysctl -w fs.inotify.max_user_instances={INOTIFY_INSTANCES}"
        )
    if machine.packages and not machine.apt:
        lines.append(
            f"The packages {' '.join(machine.packages)} are required, but there is no apt-get to install them. Install them by hand."
        )
    elif machine.packages and not machine.root:
        lines.append(
            f"The packages {' '.join(machine.packages)} are required, but {machine.user} may not install them. "
            f"Run: sudo apt-get install {' '.join(machine.packages)}"
        )
    if machine.remote_engine:
        lines.append(
            f"The Docker engine at {machine.remote_engine} must answer, but does not. Start it, or use this machine's own: "
            "unset DOCKER_HOST DOCKER_CONTEXT; docker context use default"
        )
    elif not machine.root and not machine.engine:
        lines.append(
            f"A Docker engine that answers {machine.user} is required, but none does. Run make demo as root, "
            f"or: sudo systemctl start docker; sudo usermod -aG docker {machine.user}; then log in again."
        )
    return lines


def look(cluster: str, cdsw: str = "") -> Machine:
    """This machine, for a cluster of that name; cdsw: the name of its host of CDSW, if it is to have one."""
    root = os.geteuid() == 0
    engine = has("docker") and engine_answers()
    remote = None if engine else remote_engine()
    up = engine and bool(running(cluster))
    more = CDSW_DISK_MB if cdsw and not (engine and running(cluster, cdsw)) else 0
    return Machine(
        root=root,
        user="root" if root else os.environ.get("USER", str(os.geteuid())),
        engine=engine,
        remote_engine=remote,
        up=up,
        packages=missing_packages(root) + ([] if engine or remote else missing_engine()),
        apt=shutil.which("apt-get") is not None,
        machine=platform.machine(),
        python=sys.version_info[:2],
        memory_mb=available_memory_mb(),
        inotify_instances=INOTIFY_INSTANCES if remote else int(INOTIFY.read_text(encoding="ascii")),
        disks_mb=disks(up, engine_root() if engine else ENGINE_ROOT, more=more),
    )


def running(cluster: str, host: str = "") -> list[str]:
    """Its containers, or the one of a host."""
    filters = ("--filter", f"label=hadoop-deeplearning={cluster}", "--filter", f"name=^{cluster}-{host}")
    return run("docker", "ps", "--quiet", *filters, check=False).stdout.split()


def engine_root() -> Path:
    return Path(run("docker", "info", "--format", "{{.DockerRootDir}}").stdout.strip())


def disks(up: bool, engine: Path, downloads: Path = REPOSITORY, more: int = 0) -> dict[str, tuple[int, int]]:
    """Directory: what is needed there and what is free; one entry where both are on the same file system."""

    def nearest(path: Path) -> Path:
        return next(candidate for candidate in (path, *path.parents) if candidate.exists())

    needs: dict[int, tuple[Path, int]] = {}
    for path, need in ((downloads, DOWNLOADS_MB[up]), (engine, ENGINE_DISK_MB[up] + more)):
        place = nearest(path)
        device = place.stat().st_dev
        first, sum_so_far = needs.get(device, (place, 0))
        needs[device] = (first, sum_so_far + need)
    return {str(path): (need, shutil.disk_usage(path).free // 2**20) for path, need in needs.values()}


def available_memory_mb() -> int:
    for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return 0


def has(command: str) -> bool:
    return shutil.which(command) is not None or (SYSTEM_COMMANDS / command).exists()


def remote_engine() -> str | None:
    """The address that docker would use, where DOCKER_HOST or a context names another engine than this machine's own."""
    address = os.environ.get("DOCKER_HOST", "")
    if has("docker"):
        inspected = run("docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}", check=False)
        address = inspected.stdout.strip() or address
    return address if address and address not in LOCAL_ENGINES else None


def missing_engine() -> list[str]:
    """The package of the engine if there is none; a client alone, as many machines have it, is not enough."""
    if has("docker") and has("dockerd"):
        return []
    # Docker's own packages and Debian's exclude each other.
    return ["docker-ce" if (DPKG_LISTS / "docker-ce-cli.list").exists() else "docker.io"]


def missing_packages(root: bool) -> list[str]:
    # Who is not root makes root file systems in a user namespace.
    commands = COMMANDS if root else {**COMMANDS, "newuidmap": "uidmap"}
    packages = [package for command, package in commands.items() if not has(command)]
    if not KEYRING.exists():
        packages.append("debian-archive-keyring")
    if importlib.util.find_spec("ensurepip") is None:
        packages.append("python3-venv")
    return packages


def ensure(cluster: str = "demo", cdsw: str = "") -> None:
    """Check, install the packages that are missing, and see that a Docker engine answers."""
    machine = look(cluster, cdsw)
    reasons = problems(machine)
    if reasons:
        raise DemoError(
            "This machine lacks what the demo requires:\n" + "\n".join(f"  - {problem}" for problem in reasons)
        )
    if machine.packages:
        say(f"    installing {' '.join(machine.packages)} …")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        run("apt-get", "-qq", "update", env=environment)
        run("apt-get", "-qq", "-y", "--no-install-recommends", "install", *machine.packages, env=environment)
    if machine.inotify_instances < INOTIFY_INSTANCES:
        say(f"    fs.inotify.max_user_instances = {INOTIFY_INSTANCES} …")
        try:
            INOTIFY.write_text(f"{INOTIFY_INSTANCES}\n", encoding="ascii")
        except OSError as error:
            raise DemoError(
                f"fs.inotify.max_user_instances must be {INOTIFY_INSTANCES} or more, or nodes do not boot, but is "
                f"{machine.inotify_instances}, and cannot be set here ({error}). Set it on the machine below."
            ) from error
    start_engine()


def engine_answers() -> bool:
    return run("docker", "info", check=False).returncode == 0


def start_engine() -> None:
    """Start dockerd if nobody did: by systemd, or by hand if there is no init system."""
    if engine_answers():
        return
    say("    starting the Docker engine …")
    log = REPOSITORY / ".cache" / "dockerd.log"
    place = "journalctl -u docker"
    engine: subprocess.Popen[bytes] | None = None
    if SYSTEMD.is_dir():
        run("systemctl", "start", "docker", check=False)
    else:
        place = str(log)
        log.parent.mkdir(exist_ok=True)
        ENGINE_PID.unlink(missing_ok=True)
        with log.open("wb") as handle:
            try:
                engine = subprocess.Popen(
                    ["dockerd"], stdin=subprocess.DEVNULL, stdout=handle, stderr=handle, start_new_session=True
                )
            except FileNotFoundError as error:
                raise DemoError("dockerd must be installed to start a Docker engine. Install docker.io.") from error
    for _ in range(60):
        if engine_answers():
            return
        if engine and engine.poll() is not None:
            words = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:]
            raise DemoError(
                f"the Docker engine ended with status {engine.returncode} when it was started. {place} ends with:\n    "
                + "\n    ".join(words)
            )
        time.sleep(1)
    raise DemoError(f"a Docker engine must answer within 60 seconds, and none does. Look at {place}.")


if __name__ == "__main__":
    try:
        ensure(*sys.argv[1:2])
    except DemoError as error:
        sys.exit(str(error))
