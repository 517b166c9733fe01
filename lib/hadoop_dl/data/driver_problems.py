"""Every reason why a host cannot have the requested driver, found before anything changes: one sentence for each."""

import base64
import re
from collections.abc import Iterator

from hadoop_dl.data.driver_packages import DKMS_SIGNS, Request, Rpms
from hadoop_dl.data.gpu_host import GpuHost
from hadoop_dl.data.versions import numbers

ARGUMENTS = ("rd.driver.blacklist=nouveau", "modprobe.blacklist=nouveau")  # of the kernel
SPACE_MB = {"/usr": 2000, "/boot": 200, "/var": 1000}  # what an installation takes, with room to build


def system_problems(request: Request, host: GpuHost) -> Iterator[str]:
    if host.family != "RedHat" or host.major not in ("7", "8", "9"):
        yield (
            f"The driver's packages are known on RHEL 7, 8 and 9, but {request.host} is {host.distribution} {host.major}. Install the "
            "driver there by its own means, and set nvidia_driver_version: none. Nothing was changed."
        )


def request_problems(request: Request, host: GpuHost) -> Iterator[str]:
    """What the inputs say that this host cannot have."""
    if not request.license_accepted:
        yield (
            "Installing NVIDIA's driver requires its licence accepted, but nvidia_license_accepted is not true; nothing was downloaded. Read "
            "https://www.nvidia.com/en-us/drivers/nvidia-license/ and set nvidia_license_accepted: true (the role alone: nvidia_driver_license_accepted)."
        )
    compiled = numbers(host.major or "") >= (8,)
    if request.build == "precompiled" and not (compiled and request.source == "package"):
        yield (
            "nvidia_driver_build: precompiled requires packages of the module for RHEL 8 and 9, but "
            f"{request.host} is {host.distribution} {host.major} with nvidia_driver_source: {request.source}. Set nvidia_driver_build: dkms."
        )
    if request.source == "runfile" and request.fabric_manager:
        yield (
            "nvidia_driver_fabric_manager_enabled requires the fabric manager's package of the driver's own version, but nvidia_driver_source: "
            f"runfile contains none. Set nvidia_driver_source: package for {request.host} ({host.nvswitches} NVSwitches)."
        )
    if request.dcgm_version and not (request.source == "package" and request.from_branch("450")):
        yield (
            f"nvidia_driver_dcgm_version requires packages and a driver of branch 450 or later, but {request.host} has nvidia_driver_source: "
            f"{request.source} and driver {request.version}. Install DCGM there by its own means, and remove the input."
        )
    if request.kernel_moves and not (request.kernel and host.driver.version == request.version):
        yield (
            f"playbooks/upgrade_kernel.yml requires nvidia_driver_kernel_version and a host with driver {request.version}, but found "
            f'"{request.kernel}" and {request.host} with driver {host.driver.version or "none"}. Pass -e '
            "nvidia_driver_kernel_version=VERSION-RELEASE, and install the driver with playbooks/gpu.yml first."
        )


def host_problems(request: Request, host: GpuHost, packages: Rpms, replaces: bool) -> Iterator[str]:
    """What the host has that does not go with the request."""
    driver = host.driver
    if driver.source not in (None, request.source):
        uninstall = " (or nvidia-uninstall --silent)" if driver.source == "runfile" else ""
        yield (
            f"The driver must come from one source, {request.source}, but {request.host} has {driver.version} from {origin(host)}. Remove it first: run "
            f"this role once with nvidia_driver_source: {driver.source} and nvidia_driver_state: absent{uninstall}; or set nvidia_driver_source: "
            f"{driver.source}."
        )
    elif replaces and not request.upgrade_allowed:
        kmods = f" ({', '.join(packages.other_kmods())})" if packages.other_kmods() else ""
        yield (
            f"{request.host} has driver {driver.version}{kmods}, locked, and {request.version} with the {request.module} module ({request.build}) is "
            f"requested. Only the upgrade lifts the lock: ansible-playbook playbooks/upgrade_driver.yml --limit {request.host}"
        )
    if request.kernel and not request.kernel_moves and host.kernels.needed != (request.next_kernel,):
        yield (
            f"nvidia_driver_kernel_version requires kernel {request.kernel}, but {request.host} runs or boots {', '.join(host.kernels.needed)}. Change "
            f"it host by host: ansible-playbook playbooks/upgrade_kernel.yml -e nvidia_driver_kernel_version={request.kernel}"
        )
    if not host.locks.plugin:
        yield (
            f"The versions of kernel and driver are locked with {host.locks.manager} versionlock, but its plugin is missing or disabled on "
            f"{request.host}. Add {packages.lock_plugin} to the mirror, install it, and run this again."
        )
    for path, required_mb in SPACE_MB.items() if driver.version != request.version else ():
        if (free := host.disk_free_mb.get(path) or 0) < required_mb:
            yield (
                f"{path} requires {required_mb} MB free for a driver and its build, but {request.host} has {free} MB there. Free some space and run this again."
            )


def origin(host: GpuHost) -> str:
    """Where the installed driver comes from."""
    if host.driver.source == "runfile":
        return "a .run file (/usr/bin/nvidia-uninstall)"
    return f"packages ({', '.join(sorted(host.driver.packages))})"


def signing_problems(request: Request, host: GpuHost) -> Iterator[str]:
    certificate, signing = request.signing_certificate, host.signing
    if host.secure_boot and not (certificate and (request.signing_key or request.build == "precompiled")):
        yield (
            f"Secure Boot is on, so {request.host} loads only modules that are signed with an enrolled key; nvidia_driver_signing_key and "
            "nvidia_driver_signing_certificate name none. Either enroll the site's key (mokutil --import CERTIFICATE, reboot, confirm on the console) "
            "and set both to its paths on the host, or turn Secure Boot off in the firmware. With nvidia_driver_build: precompiled set the "
            "certificate alone: NVIDIA's (https://github.com/NVIDIA/yum-packaging-precompiled-kmod/blob/main/UEFI.md)."
        )
        return
    if signing and not signers(signing.certificate):
        yield (
            f"nvidia_driver_signing_certificate must be a certificate in DER form that names its owner, but on {request.host} {certificate} is "
            f"{'missing' if signing.certificate is None else 'not'}. Nothing was changed. Correct the path, or convert it: openssl x509 -in FILE "
            f"-outform DER -out {certificate}"
        )
    if signing and host.secure_boot and "is already enrolled" not in signing.mokutil:
        yield (
            f"Secure Boot is on and modules would be signed with {certificate}, which {request.host} does not trust yet ({signing.mokutil}). Run "
            f"mokutil --import {certificate} there, reboot, confirm on the console, and run this again."
        )
    if signing and host.secure_boot and (request.build, request.source) == ("dkms", "package"):
        # None is installed: the repositories are asked for one that signs.
        match = re.search(r"[0-9]+(\.[0-9]+)+", signing.dkms)
        if match and numbers(match.group()) < numbers(DKMS_SIGNS):
            yield (
                f"Secure Boot is on, and dkms must be {DKMS_SIGNS} or later to sign modules with the site's key, but {request.host} has dkms "
                f"{match.group()}. Install a newer dkms there and run this again. Nothing was changed."
            )


def certificate_signers(host: GpuHost) -> list[str]:
    """Whom modinfo may name as a module's signer: the owner of the site's certificate, or who issued it."""
    return signers(host.signing.certificate) if host.signing else []


def signers(content: str | None) -> list[str]:
    """The names that modinfo may show as a module's signer: the certificate's subject or issuer.

    content: the file in base64. Empty if it is no certificate in DER, or one that names nobody.
    """
    from cryptography import x509  # only if modules are signed

    try:
        certificate = x509.load_der_x509_certificate(base64.b64decode(content or ""))
    except ValueError:
        return []
    names = []
    for name in (certificate.subject, certificate.issuer):
        attributes = name.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        attributes = attributes or name.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)
        names += [str(attribute.value) for attribute in attributes]
    return list(dict.fromkeys(names))
