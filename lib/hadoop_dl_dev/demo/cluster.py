"""The demo cluster: an internal network, its nodes, the access to them, and the Hadoop services on them.

Every step looks first and does only what is missing, so that an interrupted run continues.
"""

import ipaddress
import json
import os
import secrets
import shutil
import socket
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from hadoop_dl.data import stacks
from hadoop_dl_dev.demo import fixtures, images, nodes, workbench
from hadoop_dl_dev.demo.shell import DemoError, follow, output, run, say

MAX_DATA_NODES = 8
MIRROR_PORT = 8900
# Fixed, so that nodes that are added later change no other's. The engine gives its own addresses from the low end.
FIRST_ADDRESS = {"master": 200, "edge": 210, "mirror": 220, "data": 230, "cdsw": 240}
CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
MIRROR_ROOT = images.REPOSITORY / ".cache" / "mirror"
DEFAULT_NAME = "demo"
CDSW = f"{nodes.LABEL}.cdsw"  # the label of a host of CDSW: its release and kind
KERBEROS = f"{nodes.LABEL}.kerberos"  # the label of the hosts of a cluster with Kerberos
HADOOP = f"{nodes.LABEL}.hadoop"  # the label of the version that was requested
CHECKOUT = f"{nodes.LABEL}.checkout"  # the label of the directory whose cluster it is
GPU_NODES = f"{nodes.LABEL}.gpu-nodes"  # the label of their number
# A ResourceManager of Hadoop 3.3 with Kerberos keeps a core busy (YARN-11178); kerberos.CALM limits it.
MAY_LIMIT_THREADS = ("--cap-add", "SYS_NICE")
# One rule for each device: the kernel removes a rule for one container, but not a part of a rule.
GPU_DEVICES = ("--device-cgroup-rule", "c 195:0 rmw", "--device-cgroup-rule", "c 195:1 rmw")
REALM = "DEMO.EXAMPLE"
KEYTAB = "/etc/security/keytabs/deeplearning.keytab"


def inventory_of(name: str) -> Path:
    """inventories/demo is the demo's; a second cluster keeps its own with its keys."""
    if name == DEFAULT_NAME:
        return images.REPOSITORY / "inventories" / "demo"
    return images.CACHE / "clusters" / name / "inventory"


@dataclass(frozen=True)
class Cluster:
    """One demo cluster; `name` prefixes its containers and its network, so that two can stand side by side."""

    stack: str = "tf1.15-py27-el7"
    data_nodes: int = 2
    name: str = DEFAULT_NAME
    cdsw: str = ""  # release and kind of CDSW on cdsw1, one of workbench.KINDS; empty: there is no such host
    kerberos: bool = False
    hadoop: str = ""  # a version that one of the images has; empty: that of the first one with a Java for the stack
    gpu_nodes: int | None = None  # the first data nodes have GPUs, which a stand-in of nvidia-smi shows; None: all have

    def __post_init__(self) -> None:
        stacks.load_stack(self.stack)
        if self.cdsw and self.stack != workbench.STACK:
            raise DemoError(
                f"CDSW on the demo requires the stack {workbench.STACK}, but {self.stack} is requested. "
                f"Leave out one of the two: make demo CDSW=1, or make demo STACK={self.stack}"
            )
        usual = images.definitions()["hadoop"]
        if self.cdsw and images.hadoop(self.image) != usual:
            raise DemoError(f"CDSW requires Hadoop {usual} on the demo. Leave out CDSW or HADOOP.")
        if self.kerberos and images.hadoop(self.image) not in (usual, "3.1.1"):
            raise DemoError(f"Kerberos requires Hadoop {usual} or 3.1.1 on the demo. Leave out KERBEROS or HADOOP.")
        if not 1 <= self.data_nodes <= MAX_DATA_NODES:
            raise DemoError(f"DATA_NODES must be 1 to {MAX_DATA_NODES} but is {self.data_nodes}.")

    @property
    def subnet(self) -> str:
        """172.30.77.0/24 for the demo; another third byte for a cluster of another name. DEMO_SUBNET names another."""
        third = 77 if self.name == DEFAULT_NAME else zlib.crc32(self.name.encode()) % 256
        return os.environ.get("DEMO_SUBNET", f"172.30.{third}.0/24")

    @property
    def inventory(self) -> Path:
        return inventory_of(self.name)

    @property
    def image(self) -> str:
        return images.for_stack(stacks.load_stack(self.stack), self.hadoop)

    @property
    def data_hosts(self) -> list[str]:
        return [f"data{number}" for number in range(1, self.data_nodes + 1)]

    @property
    def gpu_hosts(self) -> list[str]:
        return self.data_hosts[: self.gpu_nodes]

    @property
    def hosts(self) -> list[str]:
        return ["master1", *self.data_hosts, "edge1", "mirror1", *([workbench.NAME] if self.cdsw else [])]

    @property
    def addresses(self) -> dict[str, str]:
        return {host: self.address(host) for host in self.hosts}

    @property
    def etc_hosts(self) -> dict[str, str]:
        """/etc/hosts of every node: nodes that may be added later have their place in it."""
        names = {*self.hosts, *(f"data{number}" for number in range(1, MAX_DATA_NODES + 1)), workbench.NAME}
        return {host: self.address(host) for host in sorted(names)}

    def address(self, host: str) -> str:
        kind = host.rstrip("0123456789")
        number = FIRST_ADDRESS[kind] + int(host.removeprefix(kind))
        return str(ipaddress.ip_network(self.subnet).network_address + number)

    @property
    def state(self) -> Path:
        """Keys and the like of this cluster; removed with it."""
        return images.CACHE / "clusters" / self.name

    @property
    def mirror_url(self) -> str:
        return f"http://mirror1:{MIRROR_PORT}"

    def container(self, host: str) -> str:
        return f"{self.name}-{host}"


def start(cluster: Cluster) -> None:
    """Network and nodes. Nodes of another kind under the same name are refused."""
    check_nodes(cluster)
    fixtures.ensure()
    make_network(cluster)
    reference = images.ensure(cluster.image)
    say(f"    {len(cluster.hosts)} nodes from {reference}: {', '.join(cluster.hosts)}")
    MIRROR_ROOT.mkdir(parents=True, exist_ok=True)
    cluster.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    (cluster.state / "stack").write_text(cluster.stack + "\n", encoding="utf-8")

    with ThreadPoolExecutor(4) as pool:
        starts = [
            pool.submit(nodes.start, cluster.container(host), cluster.image, node_options(cluster, host))
            for host in cluster.hosts
        ]
        for future in starts:
            future.result()
    connected = nodes.inspect(cluster.container("mirror1"), "{{json .NetworkSettings.Networks}}")
    if "bridge" not in json.loads(connected or "{}"):
        run("docker", "network", "connect", "bridge", cluster.container("mirror1"))


def make_network(cluster: Cluster) -> None:
    """internal: no way to the internet for any node but the mirror host."""
    if run("docker", "network", "inspect", cluster.name, check=False).returncode == 0:
        return
    completed = run("docker", "network", "create", "--internal", "--subnet", cluster.subnet, cluster.name, check=False)
    if completed.returncode:
        raise DemoError(
            f"a network {cluster.subnet} is required for the nodes, but the engine reports: {completed.stderr.strip()} "
            "Name a free one: DEMO_SUBNET=10.99.0.0/24 make demo"
        )


def node_options(cluster: Cluster, host: str) -> list[str]:
    mounts = [f"{images.CACHE / 'site-repo'}:/srv/site-repo:ro"]
    if host == "mirror1":
        mounts.append(f"{MIRROR_ROOT}:/srv/deeplearning-mirror")
        if CA_BUNDLE.exists():
            mounts.append(f"{CA_BUNDLE}:{CA_BUNDLE}:ro")
    labels = {nodes.LABEL: cluster.name, CHECKOUT: str(images.REPOSITORY)}
    labels |= {KERBEROS: REALM} if cluster.kerberos else {}
    labels |= {HADOOP: cluster.hadoop} if cluster.hadoop else {}
    labels |= {} if cluster.gpu_nodes is None else {GPU_NODES: str(cluster.gpu_nodes)}
    own: tuple[str, ...] = ()
    if host == workbench.NAME:
        mounts += workbench.mounts()
        labels[CDSW] = cluster.cdsw
        own = workbench.OPTIONS
    if cluster.kerberos:
        own = MAY_LIMIT_THREADS if host == "master1" else GPU_DEVICES if host in cluster.data_hosts else own
    options = nodes.options_of(
        cluster.container(host),
        network=cluster.name,
        address=cluster.address(host),
        hosts=cluster.etc_hosts,
        mounts=mounts,
        labels=labels,
        hostname=host,
    )
    return [*options, *own]


def check_nodes(cluster: Cluster) -> None:
    """Refuse existing nodes that are not the requested ones, before minutes go into images."""
    names = existing(cluster.name)
    check_checkout(names)
    remove = "Remove the demo first: " + (
        "make demo-down" if cluster.name == DEFAULT_NAME else f"scripts/demo down --name {cluster.name}"
    )
    hosts = {cluster.container(host): host for host in cluster.hosts}
    too_many = sorted(set(names) - set(hosts))
    if too_many:
        raise DemoError(
            f"The nodes {', '.join(cluster.hosts)} are requested, but there are more: {', '.join(too_many)} (data nodes hold blocks of HDFS). {remove}"
        )
    misfits = [name for name in names if nodes.is_other(name, cluster.image, node_options(cluster, hosts[name]))]
    if misfits:
        raise DemoError(
            f"{cluster.stack} needs nodes made from {images.tag(cluster.image)} and today's settings, "
            f"and these were made from others: {', '.join(sorted(misfits))}. {remove}"
        )


def check_checkout(containers: list[str]) -> None:
    """Refuse the nodes of another checkout that still exists: its keys and its inventory are there."""
    for container in containers:
        checkout = Path(nodes.inspect(container, f'{{{{index .Config.Labels "{CHECKOUT}"}}}}') or images.REPOSITORY)
        if checkout != images.REPOSITORY and (checkout / "scripts" / "demo").exists():
            raise DemoError(
                f"{container} belongs to the demo of another checkout, {checkout}. Nothing was changed. "
                "Remove that demo there (make demo-down), or give yours another name: scripts/demo run --name NAME"
            )


def wait_for_sshd(address: str, seconds: float = 30) -> None:
    """A node that has booted may still be starting its sshd, which is ready once it greets."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with socket.create_connection((address, 22), timeout=5) as connection:
                if connection.recv(4) == b"SSH-":
                    return
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise DemoError(
                f"sshd of {address} did not greet within {seconds:.0f} seconds. Is the demo's network up? docker network ls"
            )
        time.sleep(0.2)


def make_reachable(cluster: Cluster) -> None:
    """A key, the nodes' host keys, and the key on every node through playbooks/bootstrap_ssh.yml, as on a site."""
    key = cluster.state / "id_ed25519"
    if not key.exists():
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{cluster.name} cluster", "-f", str(key))
    lines = [nodes.host_key(cluster.container(host), address) for host, address in cluster.addresses.items()]
    (cluster.state / "known_hosts").write_text("".join(lines), encoding="utf-8")
    for address in cluster.addresses.values():
        wait_for_sshd(address)
    if all(reachable(cluster, host) for host in cluster.hosts):
        return
    password = secrets.token_urlsafe(24)
    for host in cluster.hosts:
        nodes.execute(cluster.container(host), "chpasswd", stdin=f"deploy:{password}\n")
    secret = cluster.state / "password.yml"
    with open(os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as handle:
        handle.write(f"ansible_password: {password}\n")
    home = cluster.state / "home"  # whose known_hosts is the cluster's
    (home / ".ssh").mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (home / ".ssh/known_hosts").is_symlink():
        (home / ".ssh/known_hosts").symlink_to(cluster.state / "known_hosts")
    status = follow(
        [
            *(str(images.REPOSITORY / ".venv/bin/ansible-playbook"), "--inventory", str(cluster.inventory)),
            *("--extra-vars", f"@{secret}", "--extra-vars", f"bootstrap_public_key={key}.pub"),
            str(images.REPOSITORY / "playbooks/bootstrap_ssh.yml"),
        ],
        env={**os.environ, "HOME": str(home), "ANSIBLE_CONFIG": str(images.REPOSITORY / "ansible.cfg")},
    )
    secret.unlink()
    for host in cluster.hosts:  # the password has done its work
        nodes.execute(cluster.container(host), "passwd", "--lock", "deploy")
    if status:
        raise DemoError("playbooks/bootstrap_ssh.yml could not make every node reachable; it says which and why.")


def ssh(cluster: Cluster, host: str) -> list[str]:
    """The ssh command line to a node, as Ansible uses it."""
    settings = (f"UserKnownHostsFile={cluster.state / 'known_hosts'}", "StrictHostKeyChecking=yes", "BatchMode=yes")
    options = [word for setting in settings for word in ("-o", setting)]
    return ["ssh", *options, "-i", str(cluster.state / "id_ed25519"), f"deploy@{cluster.addresses[host]}"]


def reachable(cluster: Cluster, host: str) -> bool:
    return run(*ssh(cluster, host), "true", check=False).returncode == 0


def existing(name: str) -> list[str]:
    """The containers of a cluster, stopped ones too."""
    of_cluster = ("--filter", f"label={nodes.LABEL}={name}")
    return output("docker", "ps", "--all", *of_cluster, "--format", "{{.Names}}").split()


def down(name: str) -> list[str]:
    """Remove a cluster's containers, network, keys and inventory; images and downloads stay for the next one."""
    containers = existing(name)
    check_checkout(containers)
    nodes.remove(*containers)
    if run("docker", "network", "inspect", name, check=False).returncode == 0:
        run("docker", "network", "rm", name)
    shutil.rmtree(images.CACHE / "clusters" / name, ignore_errors=True)
    shutil.rmtree(inventory_of(name), ignore_errors=True)
    return containers


def remove_downloads() -> list[str]:
    """Remove images, of earlier versions too, and downloads. Returns the images that containers of others use."""
    clusters = sorted(path.name for path in (images.CACHE / "clusters").glob("*"))
    if clusters:
        raise DemoError(
            f"the downloads are used by the clusters {', '.join(clusters)}. Remove those first: scripts/demo down --name {clusters[0]}"
        )
    for reference in sorted(images.ours(), key=lambda reference: "-base:" in reference):
        run("docker", "image", "rm", reference, check=False)
    shutil.rmtree(images.CACHE, ignore_errors=True)
    shutil.rmtree(MIRROR_ROOT, ignore_errors=True)
    return images.ours()


def recorded(name: str) -> Cluster:
    """The cluster of that name as it was made."""
    containers = existing(name)
    check_checkout(containers)
    path = images.CACHE / "clusters" / name / "stack"
    stack = path.read_text(encoding="utf-8").strip() if path.exists() else Cluster.stack
    data_nodes = sum(container.startswith(f"{name}-data") for container in containers)
    cdsw = label(name, workbench.NAME, CDSW)
    hadoop, gpu_nodes = label(name, "master1", HADOOP), label(name, "master1", GPU_NODES)
    number = int(gpu_nodes) if gpu_nodes else None
    return Cluster(stack, max(data_nodes, 1), name, cdsw, has_kerberos(name), hadoop, number)


def has_kerberos(name: str) -> bool:
    return bool(label(name, "master1", KERBEROS))


def label(name: str, host: str, key: str) -> str:
    """The label of a node; empty if there is none."""
    return nodes.inspect(f"{name}-{host}", f'{{{{with index .Config.Labels "{key}"}}}}{{{{.}}}}{{{{end}}}}') or ""
