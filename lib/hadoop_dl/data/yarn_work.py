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
SCHEDULER = "yarn.resourcemanager.scheduler.class"
DOMINANT = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
NOT_ISOLATED = "containers are not isolated: YARN counts GPUs, but every container on a host sees all of them, and two jobs may use the same one"

Files = dict[str, dict[str, str]]


@dataclass(frozen=True)
class Request:
    """What YARN gets on a host. conf_dir: where the daemons' configuration is; services: which daemons run there."""

    conf_dir: str
    services: tuple[str, ...]
    devices: str = "auto"
    discovery: str = "/usr/bin/nvidia-smi"


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
    return files


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
    file = yarn.files.get(f"{request.conf_dir}/yarn-site.xml")
    site = file.settings if file else {}
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
    if NODE_MANAGER in request.services and gpus and site.get(EXECUTOR, "").endswith(".LinuxContainerExecutor"):
        yield (
            "the NodeManager starts containers with LinuxContainerExecutor, whose GPU module needs container-executor.cfg and cgroups that this project "
            "does not set up. Configure GPUs there by hand (docs/yarn.md), and set yarn_gpu: false for this host."
        )
    scheduler = site.get(SCHEDULER, "")
    if RESOURCE_MANAGER in request.services and scheduler and not scheduler.endswith(".CapacityScheduler"):
        yield f"{SCHEDULER} must be the CapacityScheduler, which alone counts GPUs, but is {scheduler}. Set yarn_gpu: false, or change the scheduler."


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
