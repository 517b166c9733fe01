"""What the role nvidia_driver concludes after the driver was installed: modules, what runs, locks, whether the host must be rebooted."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from hadoop_dl.data.driver_packages import Request, packages_of
from hadoop_dl.data.driver_problems import ARGUMENTS, certificate_signers
from hadoop_dl.data.gpu_host import GpuHost, Module
from hadoop_dl.data.terminal import one_line

MOST_SAID = 400  # characters of a program's output that a message quotes


class Build(TypedDict):
    """removal: what dkms built before. Otherwise install, also with --force, takes the file that is there, and signs nothing."""

    kernel: str
    removal: list[str]
    argv: list[str]


@dataclass(frozen=True)
class State:
    """builds: modules that are missing or wrong. loads: the module may be loaded now. devices: the command that creates their nodes.
    sets_arguments: a boot entry lacks one. problems: what must not be. boot_problems: what must not be after a reboot."""

    builds: tuple[Build, ...]
    loads: bool
    devices: tuple[str, ...]
    sets_arguments: bool
    problems: tuple[str, ...]
    reboot_reason: str
    boot_problems: tuple[str, ...]


def driver_state(request: Request, host: GpuHost, signers: Sequence[str]) -> State:
    loaded = host.loaded
    runs = (loaded.version, loaded.kind) == (request.version, request.module)
    return State(
        builds=tuple(builds(request, host, signers)),
        loads=bool(host.gpus) and not host.users and not runs,
        devices=("nvidia-modprobe", "-u", *(word for number in range(len(host.gpus)) for word in ("-c", str(number)))),
        sets_arguments=bool(without_arguments(host)),
        problems=tuple(nouveau_problems(request, host)),
        reboot_reason=reboot_reason(request, host),
        boot_problems=tuple(boot_problems(request, host)),
    )


def builds(request: Request, host: GpuHost, signers: Sequence[str]) -> Iterator[Build]:
    """Packages build for the running kernel only; the next boot may start another."""
    if (request.build, request.source) != ("dkms", "package"):
        return
    signed_by = signers if request.signing_key else None
    for kernel in host.kernels.needed:
        if not module_is_right(host.modules.get(kernel), kernel, request, signed_by):
            module = ["-m", packages_of(request, host).dkms_name(), "-v", request.version, "-k", kernel]
            # unbuild came with dkms 2.8.2 (https://github.com/dell/dkms/commit/c4f3db2); after remove, install adds the module again.
            yield {
                "kernel": kernel,
                "removal": ["dkms", "remove", *module],
                "argv": ["dkms", "install", *module, "--force"],
            }


def module_is_right(module: Module | None, kernel: str, request: Request, signers: Sequence[str] | None) -> bool:
    """Whether it is the requested module, built for the kernel, and signed by one of these if there are any to ask for.

    RHEL 7's modinfo writes the organization before a signer's name.
    """
    return (
        module is not None
        and module.version == request.version
        and module.built_for == kernel
        and module.open == (request.module == "open")
        and (signers is None or any(name in (module.signer or "") for name in signers))
    )


def module_problems(request: Request, host: GpuHost, before: GpuHost, ran: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why a kernel that may run does not have the requested module, and what to do. ran: what each build returned."""
    secure_boot, signers = before.secure_boot, certificate_signers(before)
    results = {build["item"]["kernel"]: build for build in ran if isinstance(build.get("item"), Mapping)}
    problems = []
    for kernel in host.kernels.needed:
        module = host.modules.get(kernel)
        if module_is_right(module, kernel, request, signers if secure_boot else None):
            continue
        signed = f" signed by {' or '.join(signers) or 'an enrolled key'} and" if secure_boot else ""
        other_kernels = ", ".join(name for name, other_module in host.modules.items() if other_module) or "no kernel"
        description = json.dumps(vars(module)) if module else f"none; modules exist for: {other_kernels}"
        sentence = f"Kernel {kernel} of {request.host} requires the {request.module} module {request.version}{signed} built for it, but has {description}."
        kernel_build = results.get(kernel, {})
        dkms = (
            f" dkms ended with status {one_line(kernel_build['rc'])}: {printed(kernel_build)[-MOST_SAID:]}."
            if kernel_build.get("rc")
            else ""
        )
        log = f"/var/lib/dkms/{packages_of(request, host).dkms_name()}/{request.version}/build/make.log"
        problems.append(f"{sentence}{dkms} {remedy(request, log)}")
    return problems


def remedy(request: Request, log: str) -> str:
    if request.build == "precompiled":
        kind = "open-" if request.module == "open" else ""
        return f"Add the package kmod-nvidia-{kind}{request.version} for this kernel to the mirror, or set nvidia_driver_build: dkms."
    if request.source == "runfile":
        return "Run this role with nvidia_driver_state: absent, and again."
    return f"Free some space if df /var /usr shows none, read {log}, and run this again."


def without_arguments(host: GpuHost) -> list[str]:
    """Kernels whose boot entry lets nouveau in."""
    return [kernel for kernel, words in host.boot_arguments.items() if not set(ARGUMENTS) <= set(words)]


def nouveau_problems(request: Request, host: GpuHost) -> Iterator[str]:
    images = [kernel for kernel, image in host.initramfs.items() if image and image.nouveau]
    if images:
        yield (
            f"No initramfs of {request.host} may contain nouveau, but these do: {', '.join(images)}. Rebuild them with dracut --force --kver "
            "RELEASE, and look at lsinitrd."
        )
    if host.kernels.installed and (without_arguments(host) or not host.boot_arguments):
        entries = json.dumps({kernel: list(words) for kernel, words in host.boot_arguments.items()})
        yield (
            f"Every boot entry of {request.host} must have {' '.join(ARGUMENTS)}, but grubby --info=ALL shows "
            f"{entries if host.boot_arguments else 'no entry'}. Check that grubby works there, set them with grubby --update-kernel=ALL "
            '--args="…", and run this again.'
        )


def reboot_reason(request: Request, host: GpuHost) -> str:
    """Why the host must be rebooted before this driver, or the kernel that moves, runs; empty if it need not."""
    loaded, kernel = host.loaded, host.kernels.running
    if request.kernel_moves and kernel != request.next_kernel:
        return f"kernel {request.next_kernel} is installed, but {kernel} runs"
    if not host.gpus:
        return ""
    if loaded.nouveau:
        return "nouveau is loaded and holds the GPU"
    if loaded.version is None or (loaded.version, loaded.kind) == (request.version, request.module):
        return ""
    return f"driver {loaded.version} ({loaded.kind}) runs, {request.version} ({request.module}) is installed"


def boot_problems(request: Request, host: GpuHost) -> Iterator[str]:
    loaded, kernel = host.loaded, host.kernels.running
    if loaded.version != request.version or loaded.nouveau:
        nouveau = " (nouveau is back)" if loaded.nouveau else ""
        yield (
            f"After the reboot {request.host} must run driver {request.version}, but runs {loaded.version or 'none'}{nouveau}. Look at dmesg | grep "
            "-i -e nvrm -e nouveau."
        )
    if request.kernel_moves and kernel != request.next_kernel:
        yield (
            f"After the reboot {request.host} must run kernel {request.next_kernel}, but runs {kernel}. Look at grubby --default-kernel and the "
            "console, and run this again."
        )


def locks(host: GpuHost) -> dict[str, Any]:
    """How what is installed is locked: the list of dnf or yum, and this project's lines in it."""
    return {"file": host.locks.file, "lines": list(host.locks.lines)}


def installer_problem(request: Request, task_result: Mapping[str, Any], free: str, kernels: Sequence[str]) -> str:
    """What the .run file's installer, or what went before it, reported. task_result: the result of the task, or of its loop."""
    calls = [entry for entry in task_result.get("results") or () if isinstance(entry, Mapping) and entry.get("failed")]
    call = (calls or [task_result])[0]
    if "rc" not in call:
        return str(call.get("msg", ""))
    item, command = call.get("item"), call.get("cmd")
    kernel = item["kernel"] if isinstance(item, Mapping) else ", ".join(kernels)
    program = command[0] if isinstance(command, list) and command else "the installer"
    output = " ".join(str(call.get("stderr") or call.get("stdout") or "")[-600:].split())
    return (
        f"Driver {request.version} must be installed on {request.host} for kernel {kernel}, but {program} ended with status {call['rc']}: {output}. Free "
        f"space in MB: {' '.join(free.split()) or 'not known'}. Read /var/log/nvidia-installer.log, solve what it names, and run again: a "
        "partial installation does not count as a driver."
    )


def runs_ansible(host: GpuHost, connection: str, machine: str, boot: str) -> bool:
    """Whether this is the host that runs Ansible: by its connection, its machine id, or as another container of the same kernel."""
    return connection == "local" or host.machine_id == machine or (not host.container and host.boot_id == boot)


def printed(result: Mapping[str, Any]) -> str:
    """What a command printed, in one line; or why it could not be started."""
    words = f"{result.get('stdout', '')} {result.get('stderr', '')}".split()
    return " ".join(words or str(result.get("msg", "")).split())
