"""A host and a request of the role nvidia_driver, as gpu_host_info and the role's inputs have them."""

from typing import Any

from hadoop_dl.data import gpu_host
from hadoop_dl.data.driver_packages import Request

OLD, NEW = "5.14.0-427.13.1.el9_4.x86_64", "5.14.0-427.18.1.el9_4.x86_64"
LOCKS: dict[str, Any] = {"manager": "dnf", "file": "/etc/dnf/plugins/versionlock.list", "file_exists": True}
LOCKS |= {"ours": True, "plugin": True, "lines": ["nvidia-smi-0:1-1.*"]}
RECORDS: dict[str, Any] = dict.fromkeys(("before", "dcgm_before", "headers", "packages_before", "working_versions"))
FILES = dict.fromkeys(("settings", "unit", "stream", "installing", "leaving"), False)
ANSWER: dict[str, Any] = {
    "family": "RedHat",
    "distribution": "rhel",
    "major": "9",
    "kernels": {
        "running": OLD,
        "installed": [OLD, NEW],
        "default_boot": NEW,
        "needed": [OLD, NEW],
        "headers": {OLD: "/usr/src/kernels/old", NEW: "/usr/src/kernels/new"},
    },
    "kernel_packages": {"kernel": ["1", "2"]},
    "header_packages": {},
    "locks": LOCKS,
    "disk_free_mb": {"/usr": 9000, "/boot": 900, "/var": 9000},
    "boot_arguments": {},
    "driver": {"source": None, "version": None, "packages": {}, "library": None},
    "dcgm_packages": {},
    "modules": {OLD: None, NEW: None},
    "loaded": {"version": None, "kind": None, "nouveau": False, "dependents": []},
    "users": [],
    "services": [],
    "gpus": ["10de:15f8", "10de:15f8"],
    "nvswitches": 0,
    "secure_boot": None,
    "container": False,
    "machine_id": "machine",
    "boot_id": "boot",
    "initramfs": {},
    "records": RECORDS,
    "files": FILES,
    "signing": None,
}
DEBIAN: dict[str, Any] = {"family": "Debian", "distribution": "debian", "major": "12"}
INPUTS: dict[str, Any] = {
    "host": "data1",
    "state": "present",
    "version": "550.54.15",
    "source": "package",
    "module": "proprietary",
    "build": "dkms",
    **dict.fromkeys(("repository_url", "kernel"), ""),
    **dict.fromkeys(("dcgm_version", "signing_key", "signing_certificate"), ""),
    **dict.fromkeys(("license_accepted", "open_supported", "persistence"), True),
    **dict.fromkeys(("upgrade_allowed", "kernel_moves", "fabric_manager"), False),
}


def host(**changes: Any) -> gpu_host.GpuHost:
    """The host with these changes; a mapping changes only the keys that it has."""
    of_packages = {"packages", "kernel_packages", "header_packages", "dcgm_packages"}
    replaced_parts = of_packages | {"modules", "boot_arguments", "initramfs"}
    answer = dict(ANSWER)
    for name, value in changes.items():
        merges = isinstance(value, dict) and isinstance(answer[name], dict) and name not in replaced_parts
        answer[name] = {**answer[name], **value} if merges else value
    return gpu_host.read(answer)


def request(**changes: Any) -> Request:
    return Request(**{**INPUTS, **changes})


def installed(version: str | None = "550.54.15", packages: Any = ("kmod-nvidia-latest-dkms",)) -> Any:
    """The driver of a host that has one, of packages: names, or names with their versions."""
    versions = packages if isinstance(packages, dict) else dict.fromkeys(packages, ["1"])
    return {"source": "package", "version": version, "packages": versions}


def module(kernel: str, **changes: Any) -> dict[str, Any]:
    right = {"path": f"/lib/modules/{kernel}/extra/nvidia.ko", "version": "550.54.15", "built_for": kernel}
    return {**right, "other_kernel": False, "signer": None, "open": False, **changes}
