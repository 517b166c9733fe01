"""What a host is: operating system, processor, kernel, GPUs, driver. Python 2.7 and 3, standard library only; host_reader reads the rest.

Sources of the layouts read here: os-release(5), proc(5), the kernel's Documentation/ABI/testing/sysfs-bus-pci,
pci.ids (10de is NVIDIA; class 03 is a display controller, 0680 a bridge such as NVSwitch), UEFI 2.10 section 3.3 (SecureBoot).
"""

import glob
import os
import re

from . import processes

COMMAND_TIMEOUT = 20  # seconds; nvidia-smi on a sick GPU never returns
CPU_FLAGS = ("sse4_1", "sse4_2", "avx", "avx2", "fma", "avx512f")
MODULES = ("nvidia", "nvidia_uvm", "nouveau", "amdgpu")
# The newest PCI device in compat/gpu_devices.yml (tests/unit/test_host_reader.py compares): only above it is nvidia-smi
# asked for the compute capability, which takes up to seconds.
NEWEST_DEVICE = "31c3"
# Names of vGPU types end with the memory in GB and the series: GRID V100D-8Q, A10-24Q, H100L-2-24C (docs.nvidia.com/vgpu, "Virtual GPU Types").
VGPU = re.compile(r"-\d+[ABCQ](\d|ME)?$")
LIBRARIES = ("/usr/lib64", "/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib/x86_64-linux-gnu")
# Where a kernel's tree has NVIDIA's module: dkms on RHEL (extra) and Debian (updates/dkms), NVIDIA's precompiled packages
# (kmod-nvidia.spec in https://github.com/NVIDIA/yum-packaging-precompiled-kmod), its .run file (kernel/drivers/video), weak-modules.
# In the order in which RHEL's depmod searches (dist.conf).
MODULE_PLACES = (
    "updates",
    "updates/*",
    "extra",
    "extra/*",
    "extra/drivers/video/nvidia",
    "kernel/drivers/video",
    "weak-updates/*",
)
# Debian's names carry -current, and -open for the open module.
MODULE_NAME = re.compile(r"nvidia(-current(-open)?)?\.ko(\.\w+)?$")


def text(path):
    """The file's content without surrounding space, or None if it cannot be read."""
    try:
        with open(path, "rb") as handle:
            return handle.read().decode("utf-8", "replace").strip()
    except (IOError, OSError):
        return None


def java_version(home):
    """Such as 11.0.21 or 1.8.0_392; of a Java 8 without a release file (a JRE of Debian) 1.8; None if the home does not say."""
    match = re.search(r'JAVA_VERSION="([^"]+)"', text(home + "/release") or "")
    if match:
        return match.group(1)
    # Of all releases only 8 has both.
    files = [[home + lib + name for name in ("rt.jar", "tzdb.dat")] for lib in ("/lib/", "/jre/lib/")]
    return "1.8" if any(all(os.path.exists(path) for path in pair) for pair in files) else None


def java_major(version):
    """11 for 11.0.21, 8 for 1.8.0_392."""
    return re.sub(r"^1\.", "", version).split(".")[0].split("_")[0] if version else None


def version_key(version):
    """Sort key for kernel releases and versions: runs of digits compare as numbers."""
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.findall(r"\d+|[a-z]+", version)]


class System(object):
    """The host whose file system begins at root."""

    def __init__(self, root="/"):
        self.root = root.rstrip("/")
        self.unanswered = []  # commands that did not answer in time

    def at(self, path):
        return self.root + path

    def text(self, path):
        return text(self.at(path))

    def glob(self, pattern):
        return sorted(path[len(self.root) :] for path in glob.glob(self.at(pattern)))

    def exists(self, path):
        return os.path.exists(self.at(path))

    def output(self, argv, accepted=(0,)):
        """The command's output, or None for another exit status; on a recorded tree there are no commands."""
        if self.root:
            return None
        answer = processes.run(argv, COMMAND_TIMEOUT)
        if answer.late:
            self.unanswered.append(answer.problem)
        return answer.output if answer.status in accepted else None

    def operating_system(self):
        values = {}
        for line in (self.text("/etc/os-release") or "").splitlines():
            name, separator, value = line.partition("=")
            if separator:
                values[name] = value.strip().strip("\"'")
        like = (values.get("ID", "") + " " + values.get("ID_LIKE", "")).split()
        family = (
            "RedHat"
            if set(like) & {"rhel", "centos", "fedora"}
            else "Debian"
            if set(like) & {"debian", "ubuntu"}
            else None
        )
        version = values.get("VERSION_ID")
        major = version.split(".")[0] if version else None
        short = None
        if family == "RedHat" and major:
            short = "el" + major
        elif values.get("ID") and version:
            short = values["ID"] + (major if values["ID"] == "debian" else version.replace(".", ""))
        return {
            "id": values.get("ID"),
            "name": values.get("PRETTY_NAME"),
            "version": version,
            "major": major,
            "family": family,
            "short": short,
        }

    def cpu(self):
        info = self.text("/proc/cpuinfo") or ""
        match = re.search(r"^flags\s*:(.*)$", info, re.M)
        present = set(match.group(1).split()) if match else set()
        return {"features": [flag for flag in CPU_FLAGS if flag in present] if match else None}

    def libstdcxx(self):
        """The newest GLIBCXX that the C++ library has: libstdc++.so.6.0.19 has GLIBCXX_3.4.19 (GCC's ABI policy and guidelines)."""
        for place in LIBRARIES + ("/usr/lib", "/lib64"):
            for path in self.glob(place + "/libstdc++.so.6.0.*"):
                match = re.search(r"\.so\.6\.0\.(\d+)$", path)
                if match:
                    return "3.4." + match.group(1)
        return None

    def glibc(self):
        for pattern in ("/lib64/libc-*.so", "/lib/x86_64-linux-gnu/libc-*.so", "/usr/lib64/libc-*.so"):
            for path in self.glob(pattern):
                match = re.search(r"libc-(\d+\.\d+)\.so$", path)
                if match:
                    return match.group(1)
        if self.root:
            return None
        try:
            return os.confstr("CS_GNU_LIBC_VERSION").split()[-1]
        except (AttributeError, ValueError, OSError):
            return None

    def default_kernel(self):
        """The release that the next boot starts: grubby's answer, else what grub saved, else the newest installed one."""
        argv = ["/usr/sbin/grubby", "--default-kernel"]
        answer = os.path.basename(((self.output(argv) if self.exists(argv[0]) else None) or "").strip())
        if answer.startswith("vmlinuz-"):
            return answer[len("vmlinuz-") :]
        installed = self.installed_kernels()
        for path in ("/boot/grub2/grubenv", "/boot/grub/grubenv"):
            match = re.search(r"^saved_entry=(.*)$", self.text(path) or "", re.M)
            for release in sorted(installed, key=len, reverse=True) if match else []:
                if release in match.group(1):
                    return release
        return max(installed, key=version_key) if installed else None

    def installed_kernels(self):
        return [path[len("/boot/vmlinuz-") :] for path in self.glob("/boot/vmlinuz-*") if "rescue" not in path]

    def headers(self, release):
        """The directory with the headers of exactly this kernel, or None."""
        for path in (
            "/usr/src/kernels/" + release,
            "/usr/src/linux-headers-" + release,
            "/lib/modules/%s/build" % release,
        ):
            if self.exists(path + "/Makefile"):
                return path
        return None

    def kernel(self):
        running = self.text("/proc/sys/kernel/osrelease")
        installed = self.installed_kernels()
        headers = [release for release in sorted(set(installed + [running or ""])) if release and self.headers(release)]
        loaded = self.loaded_modules()
        return {
            "running": running,
            "installed": installed,
            "default_boot": self.default_kernel(),
            "headers": headers,
            "modules": [name for name in MODULES if name in loaded],
        }

    def loaded_modules(self):
        return re.findall(r"^(\w+)\s", self.text("/proc/modules") or "", re.M)

    def secure_boot(self):
        """True or False on UEFI hosts; None on others. The variable is 4 attribute bytes and one value byte."""
        for path in glob.glob(self.at("/sys/firmware/efi/efivars/SecureBoot-*")):
            try:
                with open(path, "rb") as handle:
                    return handle.read()[4:5] == b"\x01"
            except (IOError, OSError):
                return None
        return None

    def nvidia_devices(self):
        """NVIDIA's GPUs on the PCI bus, and the number of its NVSwitches, by sysfs."""
        gpus, switches = [], 0
        for path in self.glob("/sys/bus/pci/devices/*"):
            kind = self.text(path + "/class") or ""
            vendor = (self.text(path + "/vendor") or "").replace("0x", "")
            entry = {
                "address": os.path.basename(path),
                "vendor": vendor,
                "device": (self.text(path + "/device") or "").replace("0x", ""),
            }
            if vendor == "10de" and kind.startswith(("0x0300", "0x0302")):
                if self.text(path + "/subsystem_vendor") == "0x10de":
                    entry["subsystem"] = (self.text(path + "/subsystem_device") or "").replace("0x", "")
                gpus.append(entry)
            elif vendor == "10de" and kind.startswith("0x0680"):
                switches += 1
        return gpus, switches

    def add_virtual(self, gpus):
        """The vGPU type of GPUs that are parts of a hypervisor's card: the PCI id is the card's, the running driver knows more."""
        for gpu in gpus:
            path = "/proc/driver/nvidia/gpus/%s/information" % gpu["address"]
            model = re.search(r"^Model:\s*(.*?)\s*$", self.text(path) or "", re.M)
            if model and VGPU.search(model.group(1)):
                gpu["virtual"] = model.group(1)

    def nvidia(self):
        gpus, switches = self.nvidia_devices()
        kind, running = self.loaded_driver()
        names = None
        if not gpus and self.exists("/usr/bin/nvidia-smi"):  # no PCI bus to read here, as in a container
            output = self.output(["/usr/bin/nvidia-smi", "-L"])
            names = re.findall(r"^GPU \d+: (.*?) \(UUID", output or "", re.M) if output is not None else None
        if running and any(gpu["device"] > NEWEST_DEVICE for gpu in gpus):
            self.add_capabilities(gpus)
        self.add_virtual(gpus)
        parts = self.glob("/proc/driver/nvidia/capabilities/gpu*/mig/gi*")
        return {
            "gpus": gpus,
            "divided": len(set(path.split("/mig/")[0] for path in parts)),
            "nvswitches": switches,
            "listed": names,
            "driver": running,
            "module": kind,
            "installed": self.driver_library(),
            "module_kernels": [path.split("/")[3] for path in self.glob("/lib/modules/*") if self.module_files(path)],
        }

    def add_capabilities(self, gpus):
        """What nvidia-smi says of GPUs that the resolver's table cannot have; an old one refuses the field, with status 2."""
        argv = ["/usr/bin/nvidia-smi", "--query-gpu=pci.bus_id,compute_cap", "--format=csv,noheader"]
        output = self.output(argv) if self.exists(argv[0]) else None
        # 00000000:3B:00.0, 9.0; sysfs writes the domain with four digits, and small letters.
        rows = re.findall(r"^\s*[0-9A-F]{4}([0-9A-F]{4}:[0-9A-F:.]+), (\d+\.\d)\s*$", output or "", re.M | re.I)
        capabilities = dict((address.lower(), capability) for address, capability in rows)
        for gpu in gpus:
            if gpu["address"].lower() in capabilities:
                gpu["compute_cap"] = capabilities[gpu["address"].lower()]

    def loaded_driver(self):
        """Kind (open, proprietary) and version of the driver that runs in the kernel now; None, None without one."""
        loaded = (self.text("/proc/driver/nvidia/version") or "") + "\n"
        match = re.search(r"NVRM version: (.*?)\s(\d+\.\d+(?:\.\d+)?)\s", loaded)
        if not match:
            return None, None
        return "open" if "Open Kernel" in match.group(1) else "proprietary", match.group(2)

    def driver_library(self):
        """The installed driver's version, from its library's name; whether it runs is another question."""
        path = self.driver_library_path()
        return os.path.basename(path)[len("libcuda.so.") :] if path else None

    def driver_library_path(self):
        for place in LIBRARIES:
            for path in self.glob(place + "/libcuda.so.[0-9]*.*"):
                if re.match(r".*\.so\.\d+(\.\d+)+$", path):  # no copy that somebody keeps beside it
                    return path
        return None

    def module_files(self, tree):
        """NVIDIA's modules in a kernel's tree (/lib/modules/RELEASE); the kernel loads the first one."""
        return [
            path
            for place in MODULE_PLACES
            for path in self.glob(tree + "/" + place + "/nvidia*.ko*")
            if MODULE_NAME.match(os.path.basename(path))
        ]

    def cuda(self):
        toolkits = {}
        for path in self.glob("/usr/local/cuda-[0-9]*"):
            match = re.match(r"/usr/local/cuda-(\d+\.\d+)$", path)
            if match and self.exists(path + "/bin/nvcc"):
                toolkits[match.group(1)] = path
        return {"toolkits": toolkits, "cudnn": self.library("cudnn"), "nccl": self.library("nccl")}

    def library(self, name):
        """Versions of cuDNN or NCCL, from the names of its files: in a package's place, in CUDA's, or beside it."""
        versions = []
        for place in ("/usr/local/cuda*/lib64", "/usr/local/cuda-*/" + name + "-*/lib*") + LIBRARIES:
            for path in self.glob(place + "/lib" + name + ".so.*"):
                match = re.match(r"\d+(\.\d+)*$", os.path.basename(path)[len("lib" + name + ".so.") :])
                versions += [match.group(0)] if match else []
        return sorted(set(versions), key=version_key)
