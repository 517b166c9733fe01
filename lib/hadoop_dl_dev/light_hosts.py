"""Hosts for measurements that are processes: each an sshd in namespaces of its own, on a node image's files below an overlay. Root and util-linux are required.

All of it, the measured controller too, runs in one PID, mount and network namespace: whatever ends scripts/bench, by SIGKILL too, the kernel ends the processes,
mounts and addresses with it. What stays then is one directory, which the next start deletes.
"""

import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from hadoop_dl_dev import small_stack
from hadoop_dl_dev.demo import images, nodes
from hadoop_dl_dev.demo.shell import DemoError, only_one, phase, pipe, run
from hadoop_dl_dev.demo.tour import BIN, ENVIRONMENT

BASE = Path("/var/tmp/deeplearning-bench-hosts")  # noqa: S108
CONTAINER = "deeplearning-bench-hosts"
ROOTFS, MIRROR, HOSTS, INVENTORY = (BASE / name for name in ("rootfs", "mirror", "hosts", "site"))
INSIDE = "DEEPLEARNING_BENCH_INSIDE"
IMAGE = "el7"
PORT = 8900  # of the mirror, which serves MIRROR
LONGEST = 4 * 3600  # seconds of one playbook
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
SPACES = ("--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
SSHD = "hostname {name} && mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e -o MaxStartups=2000"


# The first one who starts Python reads the host, and the others get that answer.
READ_ONCE = """#!/bin/sh
[ -s /srv/answer ] && cat > /dev/null && exec cat /srv/answer
/usr/bin/{python} "$@" > /srv/answer.$$ && mv /srv/answer.$$ /srv/answer && exec cat /srv/answer
"""


def is_inside() -> bool:
    return os.environ.get(INSIDE) == "yes"


def isolated(arguments: Sequence[str]) -> int:
    """Run scripts/bench with these arguments in namespaces of its own; its exit status."""
    if os.geteuid() != 0:
        raise DemoError("hosts that are processes require root, for mounts and namespaces. Run again as root.")
    with only_one(images.CACHE / "bench.lock"):
        clean()
        try:
            with phase(f"files of {IMAGE} and a small stack"):
                make_rootfs()
                small_stack.make(INVENTORY / "stacks", MIRROR)
            return run_apart([sys.executable, "-I", "-m", "hadoop_dl_dev.bench", *arguments])
        finally:
            clean()


def run_apart(command: Sequence[str]) -> int:
    """Run a command as the first process of new namespaces, which end with this process at the latest; its exit status."""
    apart = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", *SPACES, *command]
    return subprocess.run(apart, env={**os.environ, INSIDE: "yes"}, check=False).returncode


def clean() -> None:
    """What a killed run left."""
    nodes.remove(CONTAINER)
    if BASE.exists():
        shutil.rmtree(BASE)


def make_rootfs() -> None:
    """The image's files with a key for Ansible's account. Devices are made, so that no host shares the machine's /dev."""
    ROOTFS.mkdir(parents=True)
    run("docker", "create", "--name", CONTAINER, images.ensure(IMAGE), "true")
    pipe(["docker", "export", CONTAINER], ["tar", "--extract", "--directory", str(ROOTFS)])
    nodes.remove(CONTAINER)
    shutil.rmtree(ROOTFS / "var/cache/ansible-bytecode")  # which no real host has
    for name, (major, minor) in DEVICES.items():
        device = ROOTFS / "dev" / name
        device.unlink(missing_ok=True)
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(major, minor))
        device.chmod(0o666)
    host_key, key = ROOTFS / "etc/ssh/ssh_host_ed25519_key", BASE / "key"
    for path in (host_key, key):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path))
    home = ROOTFS / "home/deploy"
    (home / ".ssh").mkdir(mode=0o700)
    shutil.copy(f"{key}.pub", home / ".ssh/authorized_keys")
    for path in (home / ".ssh", home / ".ssh/authorized_keys"):
        os.chown(path, home.stat().st_uid, home.stat().st_gid)
    (BASE / "known_hosts").write_text(f"127.* {Path(f'{host_key}.pub').read_text()}")


def address(number: int) -> str:
    return f"127.66.{number // 250}.{number % 250 + 1}"


@contextmanager
def started(names: Sequence[str], *, one_root: bool = False) -> Iterator[None]:
    """Hosts with these names and an inventory of them. one_root: all are one host by many addresses, for runs that only read."""
    run("ip", "link", "set", "lo", "up")
    shutil.rmtree(HOSTS, ignore_errors=True)
    daemons = []
    try:
        for number, name in enumerate(names[:1] if one_root else names):
            daemons.append(start(number, name, "0.0.0.0" if one_root else address(number)))  # noqa: S104 (in its own network)
        write_inventory(names)
        for number in range(len(daemons)):
            wait_for(address(number))
        yield
    finally:
        for daemon in daemons:
            daemon.kill()
            daemon.wait()
        for number in range(len(daemons)):
            run("umount", str(HOSTS / str(number) / "root"))


@contextmanager
def read_once() -> Iterator[None]:
    """The only host's Python reads it once: what each host spends is no cost of the controller's."""
    root = HOSTS / "0" / "root"
    python = root / "usr/bin/python3"
    version = python.readlink()
    python.unlink()
    python.write_text(READ_ONCE.format(python=version))
    python.chmod(0o755)
    try:
        yield
    finally:
        python.unlink()
        python.symlink_to(version)
        (root / "srv/answer").unlink(missing_ok=True)


def start(number: int, name: str, listens: str) -> subprocess.Popen[bytes]:
    upper, work, root = (HOSTS / str(number) / part for part in ("upper", "work", "root"))
    for path in (upper, work, root):
        path.mkdir(parents=True)
    options = f"lowerdir={ROOTFS},upperdir={upper},workdir={work}"
    run("mount", "-t", "overlay", "overlay", "-o", options, str(root))
    command = ["unshare", "--uts", *SPACES, f"--root={root}", "/bin/sh", "-c"]
    log = (HOSTS / str(number) / "log").open("wb")
    return subprocess.Popen([*command, f"{SSHD.format(name=name)} -o ListenAddress={listens}"], stderr=log, stdout=log)


def wait_for(at: str) -> None:
    for _ in range(200):
        if run("ssh-keyscan", "-t", "ed25519", at, check=False).stdout:
            return
        time.sleep(0.1)
    words = "".join(path.read_text(errors="replace") for path in sorted(HOSTS.glob("*/log"))[:1])
    raise DemoError(f"The sshd on {at} must answer, but did not: {words}")


def write_inventory(names: Sequence[str]) -> None:
    variables = {
        "deeplearning_request": small_stack.NAME,
        "mirror_mode": "external",
        "mirror_url": f"http://127.0.0.1:{PORT}",
        "gpu_count": 0,
        "yarn_gpu": False,
        "verify_expected_failures": list(small_stack.FAILURES),
        "verify_report_directory": str(BASE / "verify"),
        "ansible_python_interpreter": "/usr/bin/python2.7",
        "ansible_user": "deploy",
        "ansible_ssh_private_key_file": str(BASE / "key"),
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={BASE / 'known_hosts'}",
    }
    hosts = {name: {"ansible_host": address(number)} for number, name in enumerate(names)}
    content = {"all": {"vars": variables, "children": {"data_nodes": {"hosts": hosts}}}}
    (INVENTORY / "hosts.yml").write_text(yaml.safe_dump(content), encoding="utf-8")


def play(playbook: str, *arguments: str) -> str:
    """Run a playbook and close its connections, whose cost belongs to it; its output."""
    control = BASE / "cp"
    environment = {**ENVIRONMENT, "ANSIBLE_SSH_CONTROL_PATH_DIR": str(control)}
    # Without verify, as TensorFlow is a module of one line here.
    command = (str(BIN / "ansible-playbook"), "-i", str(INVENTORY / "hosts.yml"))
    done = run(*command, str(images.REPOSITORY / playbook), *arguments, env=environment, timeout=LONGEST, check=False)
    for socket in control.iterdir() if control.exists() else []:
        run("ssh", "-O", "exit", "-o", f"ControlPath={socket}", "none", check=False)
    if done.returncode:
        raise DemoError(f"{playbook} ended with status {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    return done.stdout + done.stderr
