"""The workbench (CDSW) of a site in the plan: all its hosts are one deployment, so what they need is decided once for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hadoop_dl.data.cdsw import session_words, settings, support
from hadoop_dl.data.host_facts import HostFacts, Workbench
from hadoop_dl.data.stacks import Stack, load_stack
from hadoop_dl.plan import gpu_request
from hadoop_dl.plan.gpu_request import GpuHost
from hadoop_dl.plan.model import Host, Json, Plan
from hadoop_dl.plan.target import Target

GROUP = "cdsw_hosts"
ENGINE_GROUPS = {GROUP, "cdsw_engine_host"}  # where playbooks/cdsw_engine.yml may build
TOOLKIT, DOCKER_1 = "nvidia-container-toolkit", "nvidia-docker"
# The package for each value of container_runtime.
CHOICES = {"none": "", DOCKER_1: DOCKER_1, TOOLKIT: TOOLKIT}


def engine_environment(host: Host, variables: Mapping[str, Any]) -> tuple[Stack, str] | None:
    """Stack and Python of the engine image that the host builds, by its inputs. UnknownStack if there is none of that name."""
    name = variables.get("cdsw_engine_stack")
    if not name or variables.get("cdsw_engine_state") == "absent" or not ENGINE_GROUPS & set(host.groups):
        return None
    stack = load_stack(name)
    return stack, variables.get("cdsw_engine_python") or stack.pythons[0]


@dataclass
class Deployment:
    """Decided for all hosts of cdsw_hosts; settings are empty if CDSW gets no GPUs."""

    kind: str = ""
    release: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    driver: str = ""
    master: str = ""
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def deployment(
    hosts: Sequence[Host], targets: Mapping[str, Target], additional: Mapping[str, Sequence[Target]]
) -> Deployment:
    """Decide for all hosts that have the workbench."""
    cdsw_site = Deployment()
    members = {host.name: item for host in hosts if GROUP in host.groups and (item := host.known.workbench)}
    concerned = [host for host in hosts if host.name in members]
    gpu_hosts = [host for host in concerned if host.known.nvidia.count]
    if not gpu_hosts or any(host.variables.get("cdsw_state") == "absent" for host in concerned):
        return cdsw_site
    releases = sorted({item.release or "unknown" for item in members.values()})
    kinds = sorted({item.kind for item in members.values()})
    if len(releases) > 1 or len(kinds) > 1:
        listed = ", ".join(f"{name} {item.release or 'unknown'} ({item.kind})" for name, item in members.items())
        cdsw_site.problems.append(
            f"all hosts of {GROUP} are one deployment of CDSW and must have one release of one kind, but there are {listed}. "
            "Correct the installation, or move hosts out of the group."
        )
        return cdsw_site
    if releases == ["unknown"]:
        cdsw_site.warnings.append(
            f"the release of CDSW on {', '.join(members)} could not be read from its package or parcel, so its settings are left alone."
        )
        return cdsw_site
    release, kind = releases[0], kinds[0]
    row = support(release)
    if row is None:
        cdsw_site.problems.append(
            f"CDSW {release} gives sessions no GPUs; that begins with 1.1. Upgrade CDSW, or move {', '.join(members)} out of {GROUP}."
        )
        return cdsw_site
    divided = [name for name, item in members.items() if item.mig]
    if divided:
        text = f"CDSW {release} does not divide GPUs, but MIG is enabled on {', '.join(divided)}. Disable it there: nvidia-smi -mig 0"
        (cdsw_site.problems if row.mig is False else cdsw_site.warnings).append(text)
    drivers = {
        host.name: driver(GpuHost(host, targets[host.name], tuple(additional.get(host.name, ())))) for host in gpu_hosts
    }
    without = [name for name, version in drivers.items() if not version]
    if without:
        cdsw_site.warnings.append(
            f"CDSW gives sessions the GPUs of hosts with a driver, but {', '.join(without)} has none and none is requested."
        )
        return cdsw_site
    if row.driver_path and len(set(drivers.values())) > 1:
        listed = ", ".join(f"{name} {version}" for name, version in drivers.items())
        cdsw_site.problems.append(
            f"CDSW {release} has one path of the driver for all its hosts, so they must have one driver, but have {listed}. "
            "Set one nvidia_driver_version for them."
        )
        return cdsw_site
    cdsw_site.master = next((name for name, item in members.items() if item.master), "")
    cdsw_site.kind, cdsw_site.release, cdsw_site.driver = kind, release, next(iter(drivers.values()))
    cdsw_site.settings = settings(kind, release, cdsw_site.driver)
    changing = [name for name, item in members.items() if kind == "rpm" and not settings_hold(item, cdsw_site.settings)]
    if changing and not cdsw_site.master:
        cdsw_site.problems.append(
            f"one host of {GROUP} must have the address that MASTER_IP in cdsw.conf names, but none does. "
            f"Add CDSW's master to {GROUP}; no cdsw.conf was changed."
        )
    return cdsw_site


def driver(host: GpuHost) -> str:
    """The driver's version that the host gets, else the one it has; empty for none."""
    requested_versions = gpu_request.versions(gpu_request.requested("nvidia_driver", host))
    return str(next(iter([*requested_versions, *gpu_request.there("nvidia_driver", host.facts)]), ""))


def settings_hold(item: Workbench, values: Mapping[str, str]) -> bool:
    """Whether CDSW runs with these values in its cdsw.conf, as far as this project changed it."""
    return not item.restart_pending and all(item.settings.get(name) == value for name, value in values.items())


def ask_master(plan: Plan, members: Sequence[Host], site: Deployment) -> None:
    """A worker is complete only if the master's table has it, so the master takes part wherever one of them does."""
    needing = [host for host in members if "cdsw" in plan.hosts[host.name]["needs"]]
    for host in members if needing else []:
        if host.name == site.master and host not in needing:
            plan.hosts[host.name]["needs"].append("cdsw")
            plan.hosts[host.name]["cdsw"] = part(host, site)


def part(host: Host, site: Deployment) -> Json:
    """The inputs of the role cdsw on this host."""
    item = host.known.workbench
    if item is None:
        return {}
    return {
        "kind": item.kind,
        "release": item.release or "",
        "role": "master" if host.name == site.master else "worker",
        "master": site.master,
        "settings": site.settings,
        "gpu_count": host.known.nvidia.count,
        "driver": site.driver,
        "sessions": session_words(item.sessions),
    }


def runtime(host: Host, site: Deployment) -> str:
    """Which of NVIDIA's container runtimes the host gets; empty for none."""
    choice = host.variables.get("container_runtime")
    if choice in CHOICES:
        return CHOICES[choice]
    item = host.known.workbench
    row = support(item.release) if item and item.release and site.settings else None
    return row.runtime or "" if row and host.known.nvidia.count else ""


def runtime_part(host: Host, site: Deployment) -> Json:
    """The inputs of the role container_runtime on this host; an empty name removes what the role installed."""
    name = runtime(host, site)
    return {"name": name, "driver": site.driver if name == DOCKER_1 else ""}


def runtime_difference(name: str, facts: HostFacts, site: Deployment) -> str:
    """The missing part of an installed runtime; empty if it is complete."""
    if name == DOCKER_1:
        drivers = facts.workbench.drivers if facts.workbench else ()
        return "" if site.driver in drivers else f"no directory of driver {site.driver}"
    runtimes = facts.containers.runtimes if facts.containers else ()
    return "" if "nvidia" in runtimes else "daemon.json has no runtime nvidia"


def runtime_problems(host: Host, site: Deployment) -> list[str]:
    """Why this host must not get the runtime that the site asks for."""
    name, item = runtime(host, site), host.known.workbench
    if not name:
        return []
    row = support(item.release) if item and item.release else None
    if row and (row.runtime or "") != name:
        needs = row.runtime or "the driver only, because its Docker daemon has NVIDIA's runtime already"
        return [
            f"CDSW {item.release if item else ''} needs {needs}, but container_runtime is {name}. Remove container_runtime from the inventory."
        ]
    docker = host.known.containers
    if docker is None:
        return [
            f"container_runtime {name} needs Docker on the host, but there is none. Install Docker, or set container_runtime: none."
        ]
    if name == TOOLKIT and docker.daemon_json_problem:
        return [
            f"/etc/docker/daemon.json must be JSON but is not: {docker.daemon_json_problem}. It was not touched. Correct it, and run this again."
        ]
    return []


def announce_restart(plan: Plan, host: Host, site: Deployment) -> None:
    """The restart of CDSW that its settings require on this host."""
    item = host.known.workbench
    if item is None or item.kind != "rpm" or not site.settings or settings_hold(item, site.settings):
        return
    if host.variables.get("cdsw_restart_allowed") is True:
        plan.restarts.append(f"{host.name} (CDSW {item.release}: {session_words(item.sessions)})")
        return
    plan.warnings.append(
        f"{host.name}: GPUs in sessions need another cdsw.conf and a restart of CDSW ({session_words(item.sessions)}), but "
        "cdsw_restart_allowed is false. cdsw.conf stays as it is. Set cdsw_restart_allowed: true in a window for it."
    )
