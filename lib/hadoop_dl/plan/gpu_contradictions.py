"""Conflicts in a host's GPU layer: versions that cannot work with each other or with its stacks; and warnings."""

from functools import cache

from hadoop_dl.data import stacks
from hadoop_dl.data.compat import load
from hadoop_dl.data.versions import numbers
from hadoop_dl.plan import gpu_request
from hadoop_dl.plan.gpu_request import NAMES, NONE, ROLES, GpuHost, requested, serves, there, variable, versions


@cache
def driver_floor(cuda: str) -> str | None:
    """The oldest driver on which a toolkit's programs run."""
    rows = [row for row in load().rows("cuda", "toolkits") if row["version"] == cuda]
    return str(rows[0]["min_driver"]) if rows else None


@cache
def cudnn_toolkits(line: tuple[int, ...]) -> frozenset[str]:
    """The toolkits that releases of this line of cuDNN are made for; empty if compat/ knows none."""
    rows = [row for row in load().rows("cuda", "cudnn") if numbers(row["version"])[: len(line)] == line]
    return frozenset(cuda for row in rows for cuda in row["cuda"])


def contradictions(host: GpuHost) -> list[str]:
    """Why the pinned versions cannot work with each other or with the stack."""
    problems = [*system_contradictions(host), *driver_contradictions(host), *pair_contradictions(host)]
    problems += [*source_contradictions(host), *(text for view in host.each for text in link_contradictions(view))]
    pairs = [(view, role) for view in host.each if view.needs_libraries for role in ROLES[1:]]
    for view, role in pairs:
        required, pinned = view.required(role), host.variables.get(variable(role))
        items = requested(role, host)
        if not required or pinned == NONE:
            continue
        present = [*versions(items), *there(role, host.facts)]
        if any(serves(role, required, version) for version in present):
            continue
        statement = (
            f"{variable(role)} has {', '.join(versions(items)) or 'none'}"
            if pinned is not None
            else "no release is known"
        )
        problems.append(
            f"{view.stack} requires {NAMES[role]} {required}, but {statement} and the host has "
            f"{', '.join(there(role, host.facts)) or 'none'}. Set {variable(role)} to a version that serves it, "
            f"or to none if the site installs it (docs/operate/gpu.md), or choose a stack for the CPU."
        )
    return problems


def system_contradictions(host: GpuHost) -> list[str]:
    """Toolkits and libraries of a host whose packages and directories the roles do not know."""
    system = host.facts.os
    role_versions = {role: versions(requested(role, host)) for role in ROLES[1:]}
    names = [f"{NAMES[role]} {', '.join(texts)}" for role, texts in role_versions.items() if texts]
    if not names or system.family == "RedHat":
        return []
    none = " and ".join(f"{variable(role)}: none" for role, texts in role_versions.items() if texts)
    return [
        f"CUDA, cuDNN and NCCL are installed on RHEL 7, 8 and 9 only, but the host has {system.name or 'another system'} and "
        f"{'; '.join(names)} {'is' if len(names) == 1 else 'are'} requested. Install that there by its own means and set {none}, or "
        "choose a stack that has CUDA as wheels (docs/operate/gpu.md)."
    ]


def driver_contradictions(host: GpuHost) -> list[str]:
    """Toolkits that need a newer driver than the host has or gets; a stack whose branch the host's repository lacks."""
    driver = (requested("nvidia_driver", host) or there("nvidia_driver", host.facts))[:1]
    if not host.gpus:
        return []
    if not driver:
        newest = host.newest
        decided = newest.required("driver_min") and not host.variables.get("nvidia_driver_version")
        if not decided or host.facts.nvidia.driver or host.variables.get("nvidia_driver_state") == "absent":
            return []
        return gpu_request.vgpu_problems(host.facts.nvidia) or [
            f"{newest.stack} requires driver {newest.required('driver_min')} or later of branch {newest.required('driver_branch')}, but "
            f"compat/drivers.yml lists no release of it for {host.facts.os.name or 'this system'} with dkms. Set nvidia_driver_version "
            "to one that the host's repositories have, or to none if the site installs it."
        ]
    floors = {cuda: driver_floor(cuda) for cuda in versions(requested("cuda", host))}
    return [
        f"CUDA {cuda} requires driver {floor} or later, but the host's driver is {driver[0]}. "
        "Set a newer nvidia_driver_version, or an older cuda_versions."
        for cuda, floor in floors.items()
        if floor and numbers(driver[0]) < numbers(floor)
    ]


def link_contradictions(host: GpuHost) -> list[str]:
    """A TensorFlow that is linked to the driver's library, on a host without GPUs that has no such library."""
    if not host.is_linked or host.gpus or host.facts.nvidia.driver or there("nvidia_driver", host.facts):
        return []
    keys = ("tensorflow", "python", "os")
    alike = [
        stack.name
        for stack in stacks.load_stacks()
        if "cuda" not in stack.data and all(stack.data[key] == host.wanted.data[key] for key in keys)
    ]
    return [
        f"the TensorFlow of {host.stack} is linked to libcuda.so.1 of NVIDIA's driver and cannot be imported without it, but the host has no "
        f"GPU and no driver. Request {' or '.join(alike) or 'a stack for the CPU'} (data_nodes and edge_nodes need the same), or install the "
        "library of your GPU hosts' driver there by its own means (docs/operate/gpu.md)."
    ]


def source_contradictions(host: GpuHost) -> list[str]:
    """Inputs of the site that contradict the versions that its stack decides."""
    problems = []
    driver, toolkits = requested("nvidia_driver", host), versions(requested("cuda", host))
    from_file = driver and host.variables.get("nvidia_driver_source") == "runfile"
    if from_file and not host.variables.get("nvidia_driver_version") and driver != there("nvidia_driver", host.facts):
        problems.append("nvidia_driver_source: runfile requires nvidia_driver_version, the version of that file.")
    if not toolkits or host.variables.get("cuda_versions") is not None:
        return problems
    default = host.variables.get("cuda_default")
    if default and default not in toolkits:
        problems.append(f"cuda_default must be one of the host's toolkits ({', '.join(toolkits)}), but is {default}.")
    missing = [toolkit for toolkit in toolkits if toolkit not in host.variables.get("cuda_runfiles", {})]
    if host.variables.get("cuda_source") == "runfile" and missing:
        problems.append(f"cuda_source: runfile requires an entry of cuda_runfiles for {', '.join(missing)}.")
    return problems


def pair_contradictions(host: GpuHost) -> list[str]:
    """Releases of cuDNN that were never made for the CUDA that they are pinned for."""
    pinned = host.variables.get("cudnn_versions")
    problems = []
    for item in pinned if isinstance(pinned, list) else []:
        toolkits = cudnn_toolkits(numbers(item["version"])[:2]) or cudnn_toolkits(numbers(item["version"])[:1])
        if toolkits and not {item["cuda"], item["cuda"].split(".")[0]} & toolkits:
            problems.append(
                f"cuDNN {item['version']} is made for CUDA {', '.join(sorted(toolkits, key=numbers))}, but cudnn_versions "
                f"names CUDA {item['cuda']}. Correct cudnn_versions."
            )
    return problems


def warnings(host: GpuHost) -> list[str]:
    """Warnings: what is not installed although it is named, and what is installed although nothing requires it."""
    sentences = []
    for role in ROLES:
        pinned = host.variables.get(variable(role))
        useless = not host.gpus if role == "nvidia_driver" else not host.loads_libraries
        if pinned and pinned != NONE and useless:
            sentences.append(f"{variable(role)} is set, but the host has no GPU: it gets no {NAMES[role]}.")
    toolkits = versions(requested("cuda", host))
    if host.required("cuda") and toolkits and all(view.brings_wheels for view in host.each if view.required("cuda")):
        sentences.append(
            f"{host.stack} has CUDA in its nvidia-* wheels and does not use CUDA {', '.join(toolkits)}, "
            "which cuda_versions names."
        )
    return sentences


def notes(host: GpuHost) -> list[str]:
    """Parts that the site installs itself and that the host does not have yet."""
    return [text for view in host.each for text in notes_of_stack(view)]


def notes_of_stack(host: GpuHost) -> list[str]:
    sentences: list[str] = []
    if not host.required("cuda") or host.brings_wheels or not host.gpus or not host.needs_libraries:
        return sentences
    for role in ("nvidia_driver", "cuda", "cudnn"):
        if host.variables.get(variable(role)) != NONE:
            continue
        required = host.required("driver_min" if role == "nvidia_driver" else role)
        present = there(role, host.facts)
        if role == "nvidia_driver":
            served = bool(present or host.facts.nvidia.driver)
        else:
            served = required is None or any(serves(role, required, version) for version in present)
        if required and not served:
            sentences.append(
                f"{variable(role)} is none and the host has no {NAMES[role]} {required}: "
                f"TensorFlow does not compute on its GPUs until the site installs it."
            )
    return sentences
