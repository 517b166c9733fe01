"""What the role nvidia_driver concludes from what gpu_host_info reads: tested functions, which plugins/filter/nvidia_driver.py hands to its files."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]
MOST_SAID = 400  # characters of a program's output that a message quotes


def reboot_reason(host: Json, version: str, kind: str) -> str:
    """Why the host must be rebooted before this driver runs; empty where it need not."""
    loaded = host["loaded"]
    if not host["gpus"]:
        return ""
    if loaded["nouveau"]:
        return "nouveau is loaded and holds the GPU"
    if loaded["version"] is None or (loaded["version"], loaded["kind"]) == (version, kind):
        return ""
    return f"driver {loaded['version']} ({loaded['kind']}) runs, {version} ({kind}) is installed"


def kernels_with_nouveau(initramfs: Mapping[str, Json | None]) -> list[str]:
    """Kernels whose initramfs contains nouveau."""
    return [kernel for kernel, image in initramfs.items() if image and image["nouveau"]]


def kernels_without_arguments(boot_arguments: Mapping[str, Sequence[str]], required: Iterable[str]) -> list[str]:
    """Kernels whose boot entry lacks one of these arguments."""
    needed = set(required)
    return [kernel for kernel, present in boot_arguments.items() if not needed <= set(present)]


def header_packages(kernels: Json, family: str) -> list[dict[str, str]]:
    """The packages with the headers of exactly the kernels that may run and have none."""
    missing = [kernel for kernel in kernels["needed"] if not kernels["headers"].get(kernel)]
    if family == "Debian":
        return [{"kernel": kernel, "name": f"linux-headers-{kernel}", "version": ""} for kernel in missing]
    return [{"kernel": kernel, "name": "kernel-devel", "version": kernel.removesuffix(".x86_64")} for kernel in missing]


def origin(driver: Json) -> str:
    """Where the installed driver comes from, as messages name it."""
    if driver["source"] == "runfile":
        return "a .run file (/usr/bin/nvidia-uninstall)"
    return f"packages ({', '.join(sorted(driver['packages']))})"


def signers(content: str) -> list[str]:
    """The names that modinfo may show as a module's signer: the certificate's subject or issuer.

    content: the file in base64. Empty where it is no certificate in DER, or one that names nobody.
    """
    from cryptography import x509  # noqa: PLC0415 (only where modules are signed)

    try:
        certificate = x509.load_der_x509_certificate(base64.b64decode(content))
    except ValueError:
        return []
    found = []
    for name in (certificate.subject, certificate.issuer):
        named = name.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        named = named or name.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)
        found += [str(attribute.value) for attribute in named]
    return list(dict.fromkeys(found))


def module_is_right(module: Json | None, kernel: str, request: Json) -> bool:
    """Whether this is the requested module, built for the kernel, and signed where the request requires it.

    request: version, kind, signed (whether a signature is required), signers (names; RHEL 7's modinfo writes the organization, too).
    """
    if not module:
        return False
    signer = module["signer"] or ""
    return (
        module["version"] == request["version"]
        and module["built_for"] == kernel
        and module["open"] == (request["kind"] == "open")
        and (not request["signed"] or any(name in signer for name in request["signers"]))
    )


def module_problem(modules: Mapping[str, Json | None], kernel: str, request: Json, dkms: Json) -> str:
    """Why the kernel does not have the requested module, and what to do; empty where it has it.

    request: also host, build, source and log (dkms's, of this build). dkms: what the command returned, if it ran.
    """
    module = modules.get(kernel)
    if module_is_right(module, kernel, request):
        return ""
    signed = f" signed by {' or '.join(request['signers']) or 'an enrolled key'} and" if request["signed"] else ""
    others = ", ".join(name for name, found in modules.items() if found) or "no kernel"
    has = json.dumps(dict(module)) if module else f"none; modules exist for: {others}"
    sentences = [
        f"Kernel {kernel} of {request['host']} requires the {request['kind']} module {request['version']}{signed} built for it, but has {has}."
    ]
    if dkms.get("rc"):
        sentences.append(f"dkms ended with status {dkms['rc']}: {said(dkms)[-MOST_SAID:]}.")
    return " ".join([*sentences, _remedy(request)])


def _remedy(request: Json) -> str:
    if request["build"] == "precompiled":
        return f"Add the package kmod-nvidia-{request['version']} for this kernel to the mirror, or set nvidia_driver_build: dkms."
    if request["source"] == "runfile":
        return "Run this role with nvidia_driver_state: absent, and again."
    return f"Free some space if df /var /usr shows none, read {request['log']}, and run this again."


def said(result: Json, otherwise: str = "") -> str:
    """What a command printed, in one line; or why it could not be started."""
    printed = f"{result.get('stdout', '')} {result.get('stderr', '')}".split()
    return " ".join(printed or str(result.get("msg", "")).split()) or otherwise
