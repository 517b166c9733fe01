"""What YARN's configuration must have for GPUs, and what speaks against changing it on a host. compat/hadoop.yml has the sources.

Pure functions: inputs and what the host answered in, settings and sentences out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansible.module_utils.hadoop_dl_host import hadoop_files

from hadoop_dl.data.host_facts import HadoopFile, Yarn

GPU = "yarn.io/gpu"
PROGRAM = "nvidia-smi"
FIRST = (3, 1)  # the Hadoop that schedules GPUs; 2.10 got it afterwards
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
NO_DEVICES = (
    "LinuxContainerExecutor isolates GPUs with the controller devices of cgroup v1, which must be mounted and writable, but is not (RHEL 9 boots with "
    "cgroup v2, which Hadoop's GPU plugin cannot write): a NodeManager with GPUs would not start. Mount it, or set yarn_gpu: false for this host "
    "(docs/yarn.md)."
)

Files = dict[str, dict[str, str]]


@dataclass(frozen=True)
class Isolation:
    """LinuxContainerExecutor denies a container the GPUs of others in ROOT/devices/HIERARCHY/CONTAINER (cgroup v1). config: container-executor.cfg."""

    config: str
    root: str
    hierarchy: str

    @property
    def directory(self) -> str:
        return f"{self.root}/devices/{self.hierarchy}"


@dataclass(frozen=True)
class Request:
    """What YARN gets on a host. conf_dir: where the daemons' configuration is; services: which daemons run there."""

    conf_dir: str
    services: tuple[str, ...]
    devices: str = "auto"
    discovery: str = "/usr/bin/nvidia-smi"
    isolation: Isolation | None = None


def schedules_gpus(hadoop: str) -> bool:
    """Whether a Hadoop of this version has yarn.io/gpu; the distribution's suffix does not count."""
    found = re.match(r"(\d+)\.(\d+)", hadoop)
    numbers = (int(found.group(1)), int(found.group(2))) if found else (0, 0)
    return numbers >= FIRST or numbers == (2, 10)


def settings(request: Request, gpus: bool) -> Files:
    """File -> property -> value. A NodeManager without GPUs knows the resource, and has none of it."""
    files: Files = {f"{request.conf_dir}/resource-types.xml": {TYPES: GPU}}
    if RESOURCE_MANAGER in request.services:
        files[f"{request.conf_dir}/capacity-scheduler.xml"] = {CALCULATOR: DOMINANT}
    if NODE_MANAGER in request.services and gpus:
        files[f"{request.conf_dir}/yarn-site.xml"] = {
            PLUGINS: GPU,
            DEVICES: request.devices,
            DISCOVERY: posixpath.dirname(request.discovery),  # Hadoop 3.2 and 3.3 refuse the file
        }
        if request.isolation:
            root, hierarchy = request.isolation.root, request.isolation.hierarchy
            files[f"{request.conf_dir}/yarn-site.xml"] |= {HIERARCHY: f"/{hierarchy}", MOUNT: "false", MOUNT_PATH: root}
            values = {"[gpu] module.enabled": "true", "[cgroups] root": root, "[cgroups] yarn-hierarchy": hierarchy}
            files[request.isolation.config] = values
    return files


def isolation(conf_dir: str, yarn: Yarn) -> Isolation | None:
    """How this host isolates containers with LinuxContainerExecutor, in the hierarchy that the site has; None if it cannot."""
    if not yarn.devices:
        return None
    config = yarn.executor_config or f"{conf_dir}/{CONFIG}"
    named = values_of(yarn, f"{conf_dir}/yarn-site.xml").get(HIERARCHY) or values_of(yarn, config).get(
        "[cgroups] yarn-hierarchy"
    )
    return Isolation(config, posixpath.dirname(yarn.devices), (named or "hadoop-yarn").strip("/"))


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
            yield f"{path} must be there, but is not: YARN counts GPUs with the CapacityScheduler alone. Name its directory in yarn_gpu_conf_dir."
        elif file is not None and file.problem:
            yield f"{path} must {file.problem}. Correct it."
        elif file is not None:
            yield from (
                differing(path, name, value, file) for name, value in values.items() if differs(name, value, file)
            )
    if gpus and site.get(EXECUTOR, "").endswith(f".{LINUX_EXECUTOR}"):
        yield from isolation_problems(request.isolation, yarn)
    scheduler = site.get(SCHEDULER, "")
    if RESOURCE_MANAGER in request.services and scheduler and not scheduler.endswith(".CapacityScheduler"):
        yield f"{SCHEDULER} must be the CapacityScheduler, which alone counts GPUs, but is {scheduler}. Set yarn_gpu: false, or change the scheduler."


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
    there = file.settings.get(name, "")
    accepted = (value, file.ours.get(name), hadoop_files.DEFAULTS.get(name))
    return bool(there) and name not in hadoop_files.LISTS and there not in accepted


def differing(path: str, name: str, value: str, file: HadoopFile) -> str:
    return (
        f"{path} must have {value} for {name}, but the site has {file.settings[name]} there. It was left as it is. Remove it there, or set the input of "
        "the role yarn_gpu that decides it, or yarn_gpu: false for this host."
    )
