"""What the role nvidia_driver does on a host, decided once from its inputs and from what gpu_host_info read before anything changed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hadoop_dl.data import driver_problems, gpu_host
from hadoop_dl.data.driver_packages import Pinned, Request, Rpms, packages_of
from hadoop_dl.data.driver_problems import ARGUMENTS
from hadoop_dl.data.gpu_host import GpuHost, Original


@dataclass(frozen=True)
class Check:
    """Packages that the repositories must have, before anything changes."""

    title: str
    remedy: str
    packages: tuple[str | Pinned, ...]


@dataclass(frozen=True)
class Transaction:
    """What is installed at once; the solver must find a way for it before anything changes. leaving: what leaves in it; exclude: what it must not touch."""

    title: str
    packages: tuple[str | Pinned, ...]
    leaving: tuple[str, ...]
    exclude: tuple[str, ...]


@dataclass(frozen=True)
class InstallerRun:
    """The .run file's installer builds for one kernel at a time."""

    kernel: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Headers:
    packages: tuple[Pinned, ...]
    record: tuple[str, ...]
    exclude: tuple[str, ...]


@dataclass(frozen=True)
class Removal:
    """By the records of earlier runs. runfile: its own uninstaller runs; unit: the persistence daemon's is this role's; stream: dnf
    enabled one for the driver; images: every initramfs is built again."""

    packages: tuple[str, ...]
    headers: tuple[str, ...]
    runfile: bool
    unit: bool
    stream: bool
    arguments: tuple[str, ...]
    images: bool


@dataclass(frozen=True)
class Work:
    """problems: nothing is done if there is one. replaces: an installed driver goes for another one; lifts_locks: or DCGM changes.
    original: what the host has before the first change, if that is not known yet. arguments: of every kernel. working: the versions to
    go back to."""

    problems: tuple[str, ...]
    replaces: bool
    lifts_locks: bool
    requires_idle_gpus: bool
    checks: tuple[Check, ...]
    transactions: tuple[Transaction, ...]
    original: Original | None
    headers: Headers
    signs: bool
    installation: Transaction
    kernel_packages: tuple[Pinned, ...]
    installer: tuple[InstallerRun, ...]
    installs_everything: bool
    arguments: tuple[str, ...]
    unit: bool
    daemons: tuple[str, ...]
    signers: tuple[str, ...]
    removal: Removal
    working: gpu_host.Versions


def driver_work(request: Request, host: GpuHost) -> Work:
    packages = packages_of(request, host)
    other_kmods = packages.other_kmods() if request.source == "package" else []
    present, installed = request.state == "present", host.driver.version
    replaces = bool(installed and installed != request.version) or bool(other_kmods)
    full = installed != request.version or host.files.installing
    return Work(
        problems=tuple(problems(request, host, packages, replaces)),
        replaces=replaces,
        lifts_locks=replaces or packages.dcgm_changes(),
        requires_idle_gpus=replaces if present else bool(installed),
        checks=tuple(checks(request, host, packages, replaces)),
        transactions=tuple(transactions(request, host, packages, replaces)),
        original=None if host.files.settings else original(host),
        headers=Headers(tuple(packages.headers()), tuple(packages.header_names()), packages.excluded),
        signs=present and bool(request.signing_key) and request.build == "dkms",
        installation=installation(request, packages),
        kernel_packages=kernel_names(packages),
        installer=tuple(installer_runs(request, host, full)),
        installs_everything=full,
        arguments=ARGUMENTS,
        unit=request.source == "runfile" and not (host.records.before or Original()).unit,
        daemons=daemons(request),
        signers=tuple(driver_problems.certificate_signers(host)),
        removal=removal(host, packages),
        working=working_versions(host),
    )


def problems(request: Request, host: GpuHost, packages: Rpms, replaces: bool) -> list[str]:
    unknown = list(driver_problems.system_problems(request, host))
    if unknown or request.state == "absent":
        return unknown
    return [
        *driver_problems.request_problems(request, host),
        *driver_problems.host_problems(request, host, packages, replaces),
        *driver_problems.signing_problems(request, host),
    ]


def checks(request: Request, host: GpuHost, packages: Rpms, replaces: bool) -> list[Check]:
    required: list[str | Pinned] = list(packages.headers())
    if installs_packages(request, host, packages, replaces):
        required += [*packages.requested_parts(), *packages.required(), *packages.dcgm()]
    all_checks = [Check(f"Driver {request.version}", packages.remedy(), tuple(required))]
    if installs_kernel(request, host):
        kernel_packages = tuple(packages.kernel_packages())
        all_checks.append(Check(f"Kernel {request.kernel}", "request a kernel that it has", kernel_packages))
    return [check for check in all_checks if check.packages]


def installs_packages(request: Request, host: GpuHost, packages: Rpms, replaces: bool) -> bool:
    lacks_fabric = request.fabric_manager and not set(packages.fabric_names) & set(host.driver.packages)
    lacks = lacks_fabric or not set(packages.companions()) <= set(host.driver.packages)
    changes = host.driver.version != request.version or replaces or lacks or packages.dcgm_changes()
    return request.source == "package" and changes


def installs_kernel(request: Request, host: GpuHost) -> bool:
    return request.kernel_moves and request.next_kernel not in host.kernels.installed


def transactions(request: Request, host: GpuHost, packages: Rpms, replaces: bool) -> Iterator[Transaction]:
    if installs_packages(request, host, packages, replaces):
        driver = installation(request, packages)
        yield replace(driver, packages=(*packages.headers(), *driver.packages))
    if installs_kernel(request, host):
        yield Transaction(f"Kernel {request.kernel}", kernel_names(packages), (), ("*nvidia*",))


def installation(request: Request, packages: Rpms) -> Transaction:
    leaving = (*packages.replaced(), *packages.dcgm_leaving())
    return Transaction(f"Driver {request.version}", (*packages.parts(), *packages.dcgm()), leaving, packages.excluded)


def kernel_names(packages: Rpms) -> tuple[Pinned, ...]:
    return tuple(package for package in packages.kernel_packages() if not package["name"].startswith("kmod-"))


def original(host: GpuHost) -> Original:
    words = {word for listed in host.boot_arguments.values() for word in listed}
    arguments = tuple(argument for argument in ARGUMENTS if argument in words)
    return Original(arguments, host.driver.source == "runfile", host.files.unit, host.files.stream)


def working_versions(host: GpuHost) -> gpu_host.Versions:
    """The versions to go back to: of an upgrade that did not end, what worked before it."""
    return host.records.working_versions or gpu_host.Versions(host.driver.version, host.kernels.running)


def installer_runs(request: Request, host: GpuHost, full: bool) -> list[InstallerRun]:
    """Everything for each kernel that may run, or the module for those that were installed later or have another one's."""
    if request.source != "runfile":
        return []
    right = [
        kernel
        for kernel, module in host.modules.items()
        if module
        and not module.other_kernel
        and (module.version, module.open) == (request.version, request.module == "open")
    ]
    kernels = [kernel for kernel in host.kernels.needed if full or kernel not in right]
    open_option = "--kernel-module-type=open" if request.from_branch("560") else "-m=kernel-open"
    kind = [open_option] if request.module == "open" else []
    key = [
        f"--module-signing-secret-key={request.signing_key}",
        f"--module-signing-public-key={request.signing_certificate}",
    ]
    # -K: nothing but modules; the long form is spelled differently from branch to branch.
    only_module = [["-K"] if number > 0 or not full else [] for number in range(len(kernels))]
    return [
        InstallerRun(kernel, (f"--kernel-name={kernel}", *only, *kind, *(key if request.signing_key else [])))
        for kernel, only in zip(kernels, only_module, strict=True)
    ]


def daemons(request: Request) -> tuple[str, ...]:
    services = {
        "nvidia-persistenced": request.persistence,
        "nvidia-fabricmanager": request.fabric_manager,
        "nvidia-dcgm": request.dcgm_version,
    }
    return tuple(name for name, runs in services.items() if runs)


def removal(host: GpuHost, rpms: Rpms) -> Removal:
    initial, records = host.records.before or Original(), host.records
    managed = records.before is not None or host.files.settings
    installed_before = host.driver.packages if records.packages_before is None else records.packages_before
    words = {word for listed in host.boot_arguments.values() for word in listed}
    arguments = tuple(argument for argument in ARGUMENTS if argument not in initial.arguments)
    return Removal(
        packages=(*(name for name in host.driver.packages if name not in installed_before), *rpms.dcgm_leaving()),
        headers=records.headers or (),
        runfile=managed and not initial.runfile,
        unit=managed and not initial.unit,
        stream=managed and not initial.stream,
        arguments=arguments if managed and words & set(arguments) else (),
        images=host.files.settings or host.files.leaving,
    )
