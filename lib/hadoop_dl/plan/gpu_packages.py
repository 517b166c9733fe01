"""The RPMs of the GPU layer that a mirror must hold for the planned hosts, whether or not a host lacks them now.

Names and versions are those that the roles install: lib/hadoop_dl/data/{driver,cuda}_packages.py. What they require is found
in the repositories. An entry with | has a second name, of which a repository has one.
"""

from collections.abc import Iterator
from dataclasses import fields
from types import SimpleNamespace
from typing import Any, cast

from hadoop_dl.data import cuda_packages, gpu_host
from hadoop_dl.data.driver_packages import Pinned, Request, packages_of
from hadoop_dl.plan import gpu_layer, gpu_request, workbench
from hadoop_dl.plan.component import Case
from hadoop_dl.plan.model import Plan

LIBRARIES = ("cuda", "cudnn", "nccl")


def add(plan: Plan, case: Case) -> None:
    """Add what this host needs to the set of its system."""
    specs = [spec(package) for package in packages(case)]
    if specs:
        entry = plan.gpu_packages.setdefault(case.facts.os.short or "unknown", {"hosts": [], "packages": []})
        entry["hosts"].append(case.host.name)
        entry["packages"] = sorted({*entry["packages"], *specs})


def spec(package: Pinned) -> str:
    names = [package["name"], *([package["other"]] if "other" in package else [])]
    version = package.get("version")
    return "|".join(f"{name}-{version}" if version else name for name in names)


def packages(case: Case) -> Iterator[Pinned]:
    """The packages that the roles name on this host."""
    host, variables = case.gpu_host, case.host.variables
    for version in case.versions("nvidia_driver") if variables.get("nvidia_driver_source") != "runfile" else ():
        yield from driver(version, case)
    sources = {role: variables.get(f"{role}_source") for role in LIBRARIES} | {"cudnn": gpu_request.cudnn_source(host)}
    for role in LIBRARIES if host.facts.os.family == "RedHat" else ():
        items = case.gpu[role] or [] if sources[role] in (None, "package") else []
        for library in cuda_packages.read(role, items, gpu_request.toolkit_releases(host, on_new_host=True)):
            for name, version in library.packages().items():
                yield {"name": name, "version": version}
    if runtime := workbench.runtime(case.host, case.workbench):
        yield {"name": runtime, "version": str(variables.get("container_runtime_version") or "")}


def driver(version: str, case: Case) -> list[Pinned]:
    """The driver's, with DCGM and the fabric manager, as for a host without any; modules are for the kernels that may run."""
    variables, facts, limits = case.host.variables, case.facts, gpu_layer.limits(case.facts)
    switches = variables.get("nvidia_driver_fabric_manager_enabled")
    requested: dict[str, Any] = {
        **{field.name: "" for field in fields(Request)},
        "host": case.host.name,
        "version": version,
        "module": gpu_layer.module(case.gpu_host),
        "build": variables.get("nvidia_driver_build") or "dkms",
        "open_supported": limits["open_supported"],
        "fabric_manager": switches if isinstance(switches, bool) else limits["nvswitches"] > 0,
        "dcgm_version": variables.get("nvidia_driver_dcgm_version") or "",
    }
    kernels = tuple(sorted({kernel for kernel in (facts.kernel.running, facts.kernel.default_boot) if kernel}))
    bare = SimpleNamespace(  # what the names depend on
        major=(facts.os.short or "").removeprefix("el"),
        kernels=SimpleNamespace(needed=kernels),
        driver=SimpleNamespace(packages={}),
    )
    names = packages_of(Request(**requested), cast(gpu_host.GpuHost, bare))
    return [*names.requested_parts(), *names.dcgm()]
