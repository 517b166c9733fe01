"""One node: a container with systemd and sshd, started without --privileged."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence

from hadoop_dl_dev.demo import images
from hadoop_dl_dev.demo.shell import DemoError, run

# systemd needs to mount, firewalls and slow links in fault tests need the network; nothing needs all privileges.
FLAGS = (
    *("--cap-add", "SYS_ADMIN", "--cap-add", "NET_ADMIN"),
    *("--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined"),
    *("--cgroupns", "private", "--tmpfs", "/run", "--tmpfs", "/run/lock", "--env", "container=docker"),
    *("--stop-signal", "SIGRTMIN+3"),
)
LABEL = "hadoop-deeplearning"
BOOT_SECONDS = 90


def inspect(name: str, template: str) -> str | None:
    """A container's properties by docker's template; None if there is no container."""
    completed = run("docker", "container", "inspect", "--format", template, name, check=False)
    return completed.stdout.strip() if completed.returncode == 0 else None


def state(name: str) -> str:
    """running, exited, …, or absent."""
    return inspect(name, "{{.State.Status}}") or "absent"


def options_of(
    name: str,
    network: str | None = None,
    address: str | None = None,
    hosts: Mapping[str, str] | None = None,
    mounts: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    hostname: str | None = None,
) -> list[str]:
    """The options of docker run for a node.

    hostname: the container's name by default; hosts: names and addresses for /etc/hosts; mounts: `source:target[:ro]` as docker takes them.
    """
    options = [*FLAGS, "--name", name, "--hostname", hostname or name]
    options += ["--network", network] if network else []
    options += ["--ip", address] if address else []
    for host, host_address in (hosts or {}).items():
        options += ["--add-host", f"{host}:{host_address}"]
    for mount in mounts:
        options += ["--volume", mount]
    for key, value in {LABEL: "node", **(labels or {})}.items():
        options += ["--label", f"{key}={value}"]
    return options


def made_from(image: str, options: Sequence[str]) -> str:
    """A digest of everything that a node is made from, which its label keeps."""
    return hashlib.sha256(json.dumps([images.tag(image), *options]).encode()).hexdigest()[:12]


def is_other(name: str, image: str, options: Sequence[str]) -> bool:
    """Whether a node of that name exists and was made from something else: an older image, other addresses."""
    label = inspect(name, f'{{{{index .Config.Labels "{LABEL}.made-from"}}}}')
    return label not in (None, made_from(image, options))


def start(name: str, image: str, options: Sequence[str]) -> None:
    """Start a node, or the stopped one of that name, and wait until systemd has booted it."""
    if is_other(name, image, options):
        raise DemoError(
            f"{name} must be made from {images.tag(image)} and today's settings but was made from others. "
            f"Remove it, then repeat: scripts/demo node stop {name}"
        )
    current = state(name)
    if current == "absent":
        label = f"{LABEL}.made-from={made_from(image, options)}"
        run("docker", "run", "--detach", *options, "--label", label, images.ensure(image), "/usr/sbin/node-init")
    elif current != "running":
        run("docker", "start", name)
    wait_booted(name)


def wait_booted(name: str) -> None:
    deadline = time.monotonic() + BOOT_SECONDS
    state = ""
    while time.monotonic() < deadline:
        completed = run("docker", "exec", name, "systemctl", "is-system-running", check=False)
        state = completed.stdout.strip() or completed.stderr.strip()
        if state == "running":
            return
        if state == "degraded":
            units = run("docker", "exec", name, "systemctl", "--failed", "--no-legend", "--plain").stdout
            raise DemoError(
                f"{name} booted with failed units:\n{units}Look at one with: docker exec {name} journalctl -u UNIT"
            )
        time.sleep(0.3)
    raise DemoError(
        f"{name} did not boot within {BOOT_SECONDS} seconds; systemd says {state!r}. Look: docker logs {name}"
    )


def execute(name: str, *argv: str, user: str = "root", check: bool = True, stdin: str | None = None) -> str:
    options = ("--user", user, *(("--interactive",) if stdin is not None else ()))
    return run("docker", "exec", *options, name, *argv, check=check, stdin=stdin).stdout


def succeeds(name: str, *argv: str) -> bool:
    """Whether a command on the node ends with status 0."""
    return run("docker", "exec", name, *argv, check=False).returncode == 0


def host_key(name: str, address: str) -> str:
    """The node's line of known_hosts, from the engine: the network is not asked who they are."""
    kind, key = execute(name, "cat", "/etc/ssh/ssh_host_ed25519_key.pub").split()[:2]
    return f"{address} {kind} {key}\n"


def remove(*names: str) -> None:
    if names:
        run("docker", "rm", "--force", "--volumes", *names, check=False)
