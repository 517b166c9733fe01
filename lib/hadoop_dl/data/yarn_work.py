"""YARN's settings for GPUs, and the reasons against changing them on a host. compat/hadoop.yml has the sources.

Pure functions: inputs and what the host answered in, settings and sentences out.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ansible.module_utils.hadoop_dl_host import gpu_health, hadoop_files

from hadoop_dl.data.host_facts import HadoopFile, Yarn

GPU = "yarn.io/gpu"
PROGRAM = "nvidia-smi"
FIRST = (3, 1)  # the Hadoop that schedules GPUs; 2.10 got it afterwards
LOOKS = (3, 3)  # from this one on NodeResourceMonitorImpl runs nvidia-smi again and again
RESOURCE_MANAGER, NODE_MANAGER = "resourcemanager", "nodemanager"
NAMES = {RESOURCE_MANAGER: "ResourceManager", NODE_MANAGER: "NodeManager"}
TYPES = "yarn.resource-types"
PLUGINS = "yarn.nodemanager.resource-plugins"
DEVICES = f"{PLUGINS}.gpu.allowed-gpu-devices"
DISCOVERY = f"{PLUGINS}.gpu.path-to-discovery-executables"
CALCULATOR = "yarn.scheduler.capacity.resource-calculator"
EXECUTOR = "yarn.nodemanager.container-executor.class"
LINUX_EXECUTOR = "LinuxContainerExecutor"
CGROUPS = "yarn.nodemanager.linux-container-executor.cgroups"
HIERARCHY, MOUNT, MOUNT_PATH = (f"{CGROUPS}.{name}" for name in ("hierarchy", "mount", "mount-path"))
CONFIG = "container-executor.cfg"
SCHEDULER = "yarn.resourcemanager.scheduler.class"
DOMINANT = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
NOT_ISOLATED = "containers are not isolated: YARN counts GPUs, but every container on a host sees all of them, and two jobs may use the same one"
LABELS, STORE = "yarn.node-labels.enabled", "yarn.node-labels.fs-store.root-dir"
QUEUE, SHARES = "yarn.scheduler.capacity", "yarn_gpu_node_label_queues"
# Without it YARN derives it from the queue's share of hosts without a label, and a queue with 0 % of them refuses every job (seen with 3.3.6).
MAXIMUM_APPLICATIONS = "1000"
HEALTH = "yarn.nodemanager.health-checker"
SCRIPTS = f"{HEALTH}.scripts"  # from Hadoop 3.3 on, by default "script"
# The last answer, if it is root's and new. Nothing else may end a good node: a script that is missing after its node started, or that hangs, makes it
# UNHEALTHY, and one that ends with a status other than 0 does not (NodeHealthScriptRunner of 2.10.2, 3.2.1 and 3.3.6). So it is none of this project's files.
READS_HEALTH = f"-c,find {gpu_health.PATH} -user root -mmin -{gpu_health.MINUTES} -exec head -n 1 {{}} + ; exit 0"
HEALTH_SETTINGS = {
    f"{HEALTH}.script.path": "/bin/sh",
    f"{HEALTH}.script.opts": READS_HEALTH,
    f"{HEALTH}.interval-ms": "60000",
}
# Beside cgroup v2, which has /sys/fs/cgroup to itself; empty after a boot.
OWN_ROOT = "/run/deeplearning-cgroup"
NO_DEVICES = (
    "LinuxContainerExecutor requires the controller devices of cgroup v1, mounted and writable, but it is not (Hadoop's GPU plugin cannot write "
    "cgroup v2). A NodeManager with GPUs would not start. Mount it, or set yarn_gpu: false for this host (docs/operate/yarn.md)."
)
# Fixed in 3.3.1 by YARN-10391 (its CHANGELOG). The program denies the device, and then ends with status 3: no container starts, with GPUs or without.
BROKEN = "3.3.0"

Files = dict[str, dict[str, str]]


@dataclass(frozen=True)
class Isolation:
    """LinuxContainerExecutor denies a container the GPUs of others in ROOT/devices/HIERARCHY/CONTAINER (cgroup v1).

    config: container-executor.cfg. mount: whether this project mounts the controller.
    """

    config: str
    root: str
    hierarchy: str
    mount: bool = False

    @property
    def directory(self) -> str:
        return f"{self.root}/devices/{self.hierarchy}"


@dataclass(frozen=True)
class Labels:
    """The exclusive node label of hosts with GPUs.

    shares: queue -> percent of its parent's share of these hosts; unlimited: those of the queues that have 0 % of all other hosts.
    """

    label: str
    store: str
    shares: Mapping[str, int]
    unlimited: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """The settings that YARN gets on a host. conf_dir: where the daemons' configuration is; services: which daemons run there."""

    conf_dir: str
    services: tuple[str, ...]
    devices: str = "auto"
    discovery: str = "/usr/bin/nvidia-smi"
    isolation: Isolation | None = None
    labels: Labels | None = None
    health: bool = False


def schedules_gpus(hadoop: str) -> bool:
    """Whether a Hadoop of this version has yarn.io/gpu; the distribution's suffix does not count."""
    match = re.match(r"(\d+)\.(\d+)", hadoop)
    numbers = (int(match.group(1)), int(match.group(2))) if match else (0, 0)
    return numbers >= FIRST or numbers == (2, 10)


def settings(request: Request, gpus: bool) -> Files:
    """File -> property -> value. A NodeManager without GPUs knows the resource, and has none of it."""
    files: Files = {f"{request.conf_dir}/resource-types.xml": {TYPES: GPU}}
    if RESOURCE_MANAGER in request.services:
        files[f"{request.conf_dir}/capacity-scheduler.xml"] = {CALCULATOR: DOMINANT}
        if request.labels:
            files[f"{request.conf_dir}/capacity-scheduler.xml"] |= queue_settings(request.labels)
            files[f"{request.conf_dir}/yarn-site.xml"] = {LABELS: "true", STORE: request.labels.store}
    if NODE_MANAGER in request.services and gpus:
        files[f"{request.conf_dir}/yarn-site.xml"] = {
            **files.get(f"{request.conf_dir}/yarn-site.xml", {}),
            PLUGINS: GPU,
            DEVICES: request.devices,
            DISCOVERY: posixpath.dirname(request.discovery),  # Hadoop 3.2 and 3.3 refuse the file
        }
        if request.health:
            files[f"{request.conf_dir}/yarn-site.xml"] |= HEALTH_SETTINGS
        if request.isolation:
            root, hierarchy = request.isolation.root, request.isolation.hierarchy
            files[f"{request.conf_dir}/yarn-site.xml"] |= {HIERARCHY: f"/{hierarchy}", MOUNT: "false", MOUNT_PATH: root}
            values = {"[gpu] module.enabled": "true", "[cgroups] root": root, "[cgroups] yarn-hierarchy": hierarchy}
            files[request.isolation.config] = values
    return files


def queue_settings(labels: Labels) -> dict[str, str]:
    shares = {"root": 100, **labels.shares} if labels.shares else {}
    return {
        **{
            f"{QUEUE}.{queue}.accessible-node-labels.{labels.label}.capacity": str(part)
            for queue, part in shares.items()
        },
        **{f"{QUEUE}.{queue}.maximum-applications": MAXIMUM_APPLICATIONS for queue in labels.unlimited},
    }


def unlimited(shares: Iterable[str], scheduler: Mapping[str, str]) -> tuple[str, ...]:
    """The queues that have nothing but hosts with the label, and no limit of the site. scheduler: capacity-scheduler.xml."""
    return tuple(
        queue
        for queue in shares
        if re.fullmatch(r"[0.]+%?", scheduler.get(f"{QUEUE}.{queue}.capacity", ""))
        and scheduler.get(f"{QUEUE}.{queue}.maximum-applications", MAXIMUM_APPLICATIONS) == MAXIMUM_APPLICATIONS
        and f"{QUEUE}.{queue}.queues" not in scheduler
    )


def queue_problems(labels: Labels, scheduler: Mapping[str, str]) -> Iterator[str]:
    """Why the ResourceManager would not start with these shares, or a queue would not get them."""
    sums: dict[str, int] = {}
    for queue, share in labels.shares.items():
        parent, _, name = queue.rpartition(".")
        sums[parent] = sums.get(parent, 0) + share
        queues = scheduler.get(f"{QUEUE}.{parent}.queues", "")
        words = hadoop_files.words(queues)
        capacity = scheduler.get(f"{QUEUE}.{queue}.capacity", "0")
        accessible = hadoop_files.words(scheduler.get(f"{QUEUE}.{queue}.accessible-node-labels", "*"))
        if name not in words:
            yield f"{SHARES}: {queue} must be a queue of capacity-scheduler.xml, but {parent} has {queues or 'none'} there. Name one of them."
        elif not re.fullmatch(r"[0-9.]+%?", capacity):
            yield f"{SHARES}: {queue} must have its capacity in percent, as the label's, but has {capacity}. Leave {SHARES} empty, and set the label's share yourself."
        elif not {"*", labels.label} & set(accessible):
            yield f"{SHARES}: {queue} must have access to the label {labels.label}, but accessible-node-labels has {', '.join(accessible)}. Add it there."
    for parent, total in sums.items():
        if parent != "root" and parent not in labels.shares:
            yield f"{SHARES}: {parent} must have a share, because its queues have one. Add it."
        if total != 100:
            yield f"{SHARES}: the queues of {parent} must have 100 percent together, but have {total}. Correct it."


def isolation(conf_dir: str, yarn: Yarn, may_mount: bool) -> Isolation | None:
    """How this host isolates containers with LinuxContainerExecutor, in the hierarchy that the site has; None if it cannot."""
    root = posixpath.dirname(yarn.devices or "") or (OWN_ROOT if yarn.devices_unused and may_mount else "")
    if not root:
        return None
    config = yarn.executor_config or f"{conf_dir}/{CONFIG}"
    hierarchy = values_of(yarn, f"{conf_dir}/yarn-site.xml").get(HIERARCHY) or values_of(yarn, config).get(
        "[cgroups] yarn-hierarchy"
    )
    return Isolation(config, root, (hierarchy or "hadoop-yarn").strip("/"), mount=root == OWN_ROOT)


def values_of(yarn: Yarn, path: str) -> Mapping[str, str]:
    file = yarn.files.get(path)
    return file.settings if file else {}


def listed(files: Mapping[str, Mapping[str, str]]) -> str:
    """The exact settings in a line for each file's name."""
    parts = [
        f"{path.rpartition('/')[2]}: {', '.join(f'{name}={value}' for name, value in values.items())}"
        for path, values in files.items()
    ]
    return "; ".join(parts)


def problems(request: Request, yarn: Yarn, gpus: bool) -> Iterator[str]:
    """Why the host's configuration cannot get these settings, without a change of what the site decided."""
    if posixpath.basename(request.discovery) != PROGRAM:
        yield f"yarn_gpu_discovery must end with /{PROGRAM}, which the NodeManager looks for, but is {request.discovery}. Correct it."
    site = values_of(yarn, f"{request.conf_dir}/yarn-site.xml")
    for path, values in settings(request, gpus).items():
        file = yarn.files.get(path)
        if file is None and path.endswith("/capacity-scheduler.xml"):
            yield f"{path} must be there, but is not: the CapacityScheduler counts GPUs with it. Name its directory in yarn_gpu_conf_dir."
        elif file is not None and file.problem:
            yield f"{path} must {file.problem}. Correct it."
        elif file is not None:
            yield from (
                differing(path, name, value, file) for name, value in values.items() if differs(name, value, file)
            )
    scripts = hadoop_files.words(site.get(SCRIPTS, "script"))
    if request.health and gpus and "script" not in scripts:
        yield other_script(f"{request.conf_dir}/yarn-site.xml", SCRIPTS, ",".join(scripts))
    if request.labels and RESOURCE_MANAGER in request.services:
        yield from queue_problems(request.labels, values_of(yarn, f"{request.conf_dir}/capacity-scheduler.xml"))
    if gpus and site.get(EXECUTOR, "").endswith(f".{LINUX_EXECUTOR}"):
        yield from isolation_problems(request.isolation, yarn)


def scheduler_problems(request: Request, yarn: Yarn) -> Iterator[str]:
    """Why the ResourceManager is none that this project configures."""
    scheduler = values_of(yarn, f"{request.conf_dir}/yarn-site.xml").get(SCHEDULER, "")
    if RESOURCE_MANAGER in request.services and scheduler and not scheduler.endswith(".CapacityScheduler"):
        yield f"{SCHEDULER} must be the CapacityScheduler, which alone this project configures, but is {scheduler}. Set yarn_gpu: false, or change the scheduler."


def isolation_problems(isolation: Isolation | None, yarn: Yarn) -> Iterator[str]:
    """Why a NodeManager with LinuxContainerExecutor would not start with the GPU plugin, or could not isolate."""
    if isolation is None:
        yield NO_DEVICES
    elif not re.fullmatch(r"(?!.*\.\.)[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*", isolation.hierarchy):
        yield f"{HIERARCHY} must be a path of letters, digits and _ . -, but is {isolation.hierarchy}. Correct it."
    elif isolation.config not in yarn.files:
        yield (
            f"{CONFIG} must be where the program container-executor reads it, but {yarn.executor_config or 'no such program'} was found. "
            "Name the program in yarn.nodemanager.linux-container-executor.path, and create the file as Hadoop's documentation says."
        )


def differs(name: str, value: str, file: HadoopFile) -> bool:
    """Whether the site has another value, which it set itself."""
    site_value = file.settings.get(name, "")
    accepted = (value, file.ours.get(name), hadoop_files.DEFAULTS.get(name))
    return bool(site_value) and name not in hadoop_files.LISTS and site_value not in accepted


def other_script(path: str, name: str, value: str) -> str:
    return (
        f"{path} must have no health check of the site, because yarn_gpu_health sets YARN's own, but has {name}={value}. It was left as it is. Remove it "
        f"there; or set yarn_gpu_health: false and gpu_check_yarn_health: true, and let the site's script print {gpu_health.PATH} as well."
    )


def differing(path: str, name: str, value: str, file: HadoopFile) -> str:
    if name in HEALTH_SETTINGS:
        return other_script(path, name, file.settings[name])
    return (
        f"{path} must have {value} for {name}, but the site has {file.settings[name]} there. It was left as it is. Remove it there, or set the input of "
        "the role yarn_gpu that decides it, or yarn_gpu: false for this host."
    )
