#!/usr/bin/python
"""Read what decides about a GPU driver on a host: kernels, boot entries, modules, packages, processes. Changes nothing."""

DOCUMENTATION = r"""{
"module": "gpu_host_info",
"short_description": "Read kernels, driver, modules, boot entries and users of the GPUs on a host",
"description": ["Answers with one mapping, C(gpu_host). Reads only, and therefore runs in check mode."],
"options": {
  "initramfs": {"description": "Also list the initramfs of every installed kernel (about two seconds for each).", "type": "bool", "default": false},
  "certificate": {"description": "Also read this certificate, in DER, of the key that modules are signed with; what Secure Boot decides is asked with it.", "type": "path"}
}}"""

RETURN = r"""
gpu_host: {description: What was read, type: dict, returned: always}
"""

import base64
import json
import os
import re

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import documented, host_reader, host_system, processes

LARGEST_CERTIFICATE = 64 * 1024  # bytes
COMMAND_TIMEOUT = 60  # seconds; one initramfs is listed in two

# Packages that are the kernel, or follow it: their versions are compared before and after.
KERNEL_PACKAGES = re.compile(r"^kernel(-core|-modules|-modules-core|-modules-extra|-uek)?$")
# Headers that modules are built with. This role installs some, so they are not compared; but an update must leave them alone.
HEADER_PACKAGES = re.compile(r"^kernel(-uek)?-devel(-matched)?$")
OUR_LOCKS = "# BEGIN deeplearning nvidia_driver"  # blockinfile's first line
# NVIDIA's own packages of the driver, and those of ELRepo, RPM Fusion and negativo17.
DRIVER_PACKAGES = re.compile(
    r"^(nvidia-driver(?!-assistant)\S*|kmod-nvidia\S*"
    r"|nvidia-kmod-common|nvidia-persistenced\S*|nvidia-fabric-?manager\S*|nvidia-modprobe\S*|cuda-drivers\S*"
    r"|nvidia-xconfig\S*|libnvidia-(cfg|fbc|gpucomp|ml)|xorg-x11-drv-nvidia\S*"
    r"|nvidia-x11-drv\S*|akmod-nvidia\S*|dkms-nvidia\S*"
    r"|nvidia-open(-[0-9]+)?|libnvidia-nscq\S*|nvidia-imex\S*|libnvsdm\S*)$"
)
# Up to DCGM 3 one package, from 4 on several: docs.nvidia.com/datacenter/dcgm/latest/installation.html.
DCGM_PACKAGES = re.compile(r"^datacenter-gpu-manager(-\S+)?$")
# Daemons of the driver, and those that watch it: they hold the device and are no work. As the kernel shortens their names.
DAEMONS = (
    "nvidia-persiste",
    "nv-fabricmanage",
    "nvidia-imex",
    "nv-hostengine",
    "dcgm-exporter",
    "nvidia_gpu_expo",
    "nvidia-device-p",
)
# Programs whose nvidia-smi only looks, as words of their command line.
WATCHERS = ("org.apache.hadoop.yarn.server.nodemanager.NodeManager", "/opt/deeplearning/bin/gpu-check")
# Their units: what has them open keeps the module in the kernel.
SERVICES = (
    "nvidia-persistenced",
    "nvidia-fabricmanager",
    "nvidia-imex",
    "nvidia-dcgm",
    "dcgm",
    "dcgm-exporter",
    "nvidia-dcgm-exporter",
    "nvidia_gpu_exporter",
)
# Modules of other packages, or of the driver, that keep nvidia in the kernel: of what NVIDIA's driver manager for Kubernetes unloads
# (github.com/NVIDIA/k8s-driver-manager, cmd/driver-manager/main.go), and the older github.com/Mellanox/nv_peer_memory.
DEPENDENTS = ("nvidia_peermem", "nv_peer_mem", "nvidia_fs", "gdrdrv")
RECORD = "/opt/deeplearning/etc/nvidia-driver-%s.json"
RECORDS = ("before", "dcgm_before", "headers", "packages_before", "working_versions")
FILES = {
    "settings": "/etc/modprobe.d/deeplearning-nouveau.conf",
    "unit": "/etc/systemd/system/nvidia-persistenced.service",
    "stream": "/etc/dnf/modules.d/nvidia-driver.module",
    "installing": "/opt/deeplearning/etc/nvidia-driver-unfinished",
    "leaving": "/opt/deeplearning/etc/nvidia-driver-leaving",
}


class Host(object):
    """The host below root; tests hand in a recorded tree and an answering function for commands."""

    def __init__(self, root="", run=None, words=None):
        self.reader = host_reader.Reader(root)
        self.root = self.reader.root
        self.text, self.exists, self.glob = self.reader.text, self.reader.exists, self.reader.glob
        self.run, self.words = run or run_command, words or printed
        self.reader.output = self.run

    def family(self):
        return "RedHat" if self.exists("/etc/redhat-release") else "Debian"

    def kernels(self):
        running = (self.run(["uname", "-r"]) or "").strip()
        installed = self.reader.installed_kernels()
        default = self.reader.default_kernel()
        needed_kernels = sorted(set(name for name in (running, default) if name))
        return {
            "running": running,
            "installed": sorted(installed, key=host_system.version_key),
            "default_boot": default,
            "needed": needed_kernels,
            "headers": dict((name, self.reader.headers(name)) for name in sorted(set(installed + needed_kernels))),
        }

    def boot_arguments(self):
        """Kernel arguments by installed kernel, as grubby tells them."""
        arguments, kernel = {}, None
        for line in (self.run(["grubby", "--info=ALL"]) or "").splitlines():
            name, _, value = line.partition("=")
            if name == "kernel":
                kernel = os.path.basename(value.strip('"'))[len("vmlinuz-") :]
            elif name == "args" and kernel and "rescue" not in kernel:
                arguments[kernel] = value.strip('"').split()
        return arguments

    def packages(self):
        """Installed versions by name, of packages of kernels, of their headers, of the driver, and of DCGM."""
        answer = self.run(["rpm", "-qa", "--qf", "%{NAME} %|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\\n"])
        kinds = {}, {}, {}, {}
        for line in (answer or "").splitlines():
            words = line.split()
            if len(words) != 2:
                continue
            patterns = (KERNEL_PACKAGES, HEADER_PACKAGES, DRIVER_PACKAGES, DCGM_PACKAGES)
            for pattern, kind in zip(patterns, kinds):
                if pattern.match(words[0]):
                    kind[words[0]] = sorted(kind.get(words[0], []) + [words[1]])
        return kinds

    @staticmethod
    def locked_versions(kernel, headers, driver):
        """What may be installed of each package: what is, and of headers also those of every installed kernel."""
        locked = dict(kernel, **dict(headers, **driver))
        matching = set(sum((locked.get(name, []) for name in ("kernel", "kernel-core", "kernel-devel")), []))
        return dict(locked, **{"kernel-devel": sorted(matching)}) if matching else locked

    def locks(self, versions):
        """The package manager's lock list, whether its plugin honours it, and the lines that pin these versions."""
        manager = "dnf" if self.exists("/usr/bin/dnf") else "yum"
        directory = "/etc/dnf/plugins" if manager == "dnf" else "/etc/yum/pluginconf.d"
        settings = self.text(directory + "/versionlock.conf") or ""
        lines = []
        for name in sorted(versions):
            for version in versions[name]:
                epoch, _, version_release = version.rpartition(":")
                # dnf reads NAME-EPOCH:VERSION-RELEASE.ARCH, yum EPOCH:NAME-VERSION-RELEASE.ARCH.
                form = "%(name)s-%(epoch)s:%(rest)s.*" if manager == "dnf" else "%(epoch)s:%(name)s-%(rest)s.*"
                lines.append(form % {"name": name, "epoch": epoch or "0", "rest": version_release})
        return {
            "manager": manager,
            "file": directory + "/versionlock.list",
            "file_exists": self.exists(directory + "/versionlock.list"),
            "ours": OUR_LOCKS in (self.text(directory + "/versionlock.list") or ""),
            "plugin": re.search(r"^enabled\s*=\s*(1|true)", settings, re.M | re.I) is not None,
            "lines": lines,
        }

    def modules(self, releases):
        """The nvidia module that each kernel would load: version, vermagic, signer, whether it is the open one."""
        modules = {}
        for release in releases:
            candidates = self.reader.module_files("/lib/modules/" + release)
            modules[release] = self.module(candidates[0], release) if candidates else None
        return modules

    def module(self, path, release):
        fields = {}
        for line in (self.run(["modinfo", self.root + path]) or "").splitlines():
            name, _, value = line.partition(":")
            fields.setdefault(name.strip(), value.strip())
        built_for = (fields.get("vermagic") or "").split(" ")[0] or None
        return {
            "path": path,
            "version": fields.get("version"),
            "built_for": built_for,
            "other_kernel": built_for != release,
            "signer": fields.get("signer"),
            "open": "GPL" in fields.get("license", ""),
        }

    def loaded(self):
        """The driver that runs in the kernel now."""
        kind, version = self.reader.loaded_driver()
        modules = self.reader.loaded_modules()
        return {
            "version": version,
            "kind": kind,
            "nouveau": "nouveau" in modules,
            "dependents": [name for name in DEPENDENTS if name in modules],
        }

    def source(self, driver_packages):
        """Where the installed driver comes from: package, runfile, or None; and its version."""
        if self.exists("/usr/bin/nvidia-uninstall") and self.exists("/var/lib/nvidia/log"):
            return "runfile", self.reader.driver_library()
        if driver_packages:
            return "package", self.reader.driver_library()
        return None, None

    def users(self):
        """Processes that hold a GPU: who would lose it when the driver changes."""
        users = []
        for path in self.glob("/proc/[0-9]*/fd"):
            pid = path.split("/")[2]
            name = (self.text("/proc/%s/comm" % pid) or "").strip()
            if name.startswith(DAEMONS) or (name == "nvidia-smi" and self.watches(self.parent(pid))):
                continue
            try:
                targets = [os.readlink(self.root + path + "/" + item) for item in os.listdir(self.root + path)]
            except (IOError, OSError):
                continue  # it has ended, or it is a kernel thread
            if any(re.match(r"/dev/nvidia(\d+|-uvm|-caps/.*)$", target) for target in targets):
                users.append({"pid": int(pid), "name": name})
        return sorted(users, key=lambda item: item["pid"])

    def parent(self, pid):
        match = re.search(r"^PPid:\s*(\d+)", self.text("/proc/%s/status" % pid) or "", re.M)
        return match.group(1) if match else "0"

    def watches(self, pid):
        """Whether its nvidia-smi is no work: from Hadoop 3.3 on a NodeManager runs one every 3 seconds, and gpu-check's timer some each minute."""
        return bool(set(WATCHERS) & set((self.text("/proc/%s/cmdline" % pid) or "").split("\0")))

    def services(self):
        """Units that are active and hold the GPUs though they do no work."""
        argv = ["systemctl", "list-units", "--plain", "--no-legend", "--full", "--state=active"]
        output = self.run(argv + [name + ".service" for name in SERVICES]) or ""
        active = [line.split()[0] for line in output.splitlines() if line.strip()]
        return [name for name in SERVICES if name + ".service" in active]

    def initramfs(self, release):
        """Paths inside a kernel's initramfs that matter here; None if there is no image."""
        if not self.exists("/boot/initramfs-%s.img" % release):
            return None
        output = self.run(["lsinitrd", self.root + "/boot/initramfs-%s.img" % release])
        return {
            "readable": bool(output),
            "nouveau": re.search(r"/nouveau\.ko\S*$", output or "", re.M) is not None,
        }

    def free(self, path):
        try:
            stat = os.statvfs(self.root + path)
        except OSError:
            return None
        return stat.f_bavail * stat.f_frsize // (1024 * 1024)

    def record(self, name):
        """What the role nvidia_driver wrote down; an empty list stands for a record of nothing."""
        path = RECORD % name.replace("_", "-")
        text = self.text(path)
        try:
            return None if text is None else json.loads(text)
        except ValueError:
            raise Unusable("%s must be JSON, but is not. Restore it and run this again. Nothing was changed." % path)

    def signing(self, certificate):
        """The site's certificate; under Secure Boot what mokutil says about it, and which dkms there is."""
        secure = self.reader.secure_boot() is True
        try:
            with open(self.root + certificate, "rb") as handle:
                content = base64.b64encode(handle.read(LARGEST_CERTIFICATE)).decode("ascii")
        except (IOError, OSError):
            content = None
        return {
            "certificate": content,
            # Its exit status differs between releases; its words decide.
            "mokutil": self.words(["mokutil", "--test-key", certificate]) if secure else "",
            "dkms": self.words(["dkms", "--version"]) if secure else "",
        }

    def read(self, initramfs=False, certificate=None):
        kernels = self.kernels()
        kernel_packages, header_packages, driver_packages, dcgm_packages = self.packages()
        records = dict((name, self.record(name)) for name in RECORDS)
        locked = driver_packages if records["dcgm_before"] is None else dict(driver_packages, **dcgm_packages)
        source, version = self.source(driver_packages)
        gpus, switches = self.reader.nvidia_devices()
        system = self.reader.operating_system()
        return {
            "family": self.family(),
            "distribution": system["id"],
            "major": system["major"],
            "kernels": kernels,
            "kernel_packages": kernel_packages,
            "header_packages": header_packages,
            "locks": self.locks(self.locked_versions(kernel_packages, header_packages, locked)),
            "disk_free_mb": dict((path, self.free(path)) for path in ("/usr", "/boot", "/var")),
            "boot_arguments": self.boot_arguments(),
            "driver": {
                "source": source,
                "version": version,
                "packages": driver_packages,
                "library": self.reader.driver_library_path(),
            },
            "dcgm_packages": dcgm_packages,
            "modules": self.modules(sorted(set(kernels["installed"] + kernels["needed"]))),
            "loaded": self.loaded(),
            "users": self.users(),
            "services": self.services(),
            "gpus": ["10de:" + gpu["device"] for gpu in gpus],
            "nvswitches": switches,
            "secure_boot": self.reader.secure_boot(),
            "container": (self.run(["systemd-detect-virt", "--container"]) or "none").strip() != "none",
            "machine_id": (self.text("/etc/machine-id") or "").strip(),
            "boot_id": (self.text("/proc/sys/kernel/random/boot_id") or "").strip(),
            "initramfs": dict((release, self.initramfs(release)) for release in kernels["installed"])
            if initramfs
            else {},
            "records": records,
            "files": dict((name, self.exists(path)) for name, path in FILES.items()),
            "signing": self.signing(certificate) if certificate else None,
        }


class Unusable(Exception):
    """What decides about the driver cannot be known; the text says why, and what to do."""


def program(argv):
    environment = dict(os.environ, LC_ALL="C")
    environment["PATH"] = environment.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"
    return processes.run(argv, COMMAND_TIMEOUT, environment)


def run_command(argv):
    """The command's output, or None if it is missing or fails."""
    answer = program(argv)
    if answer.late:
        raise Unusable(
            "The kernels, packages and modules of the host must be known, but %s. Nothing was changed. Look for what holds it "
            "(another package manager, a disk that does not answer), end that, and run again." % answer.problem
        )
    return answer.output if answer.status == 0 else None


def printed(argv):
    """What the command printed, whatever its exit status, or why it printed nothing."""
    answer = program(argv)
    return " ".join((answer.output + " " + answer.error).split()) or answer.problem or "%s printed nothing" % argv[0]


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    try:
        info = Host().read(module.params["initramfs"], module.params["certificate"])
    except Unusable as problem:
        module.fail_json(msg=str(problem))
    module.exit_json(changed=False, gpu_host=info)


if __name__ == "__main__":
    main()
