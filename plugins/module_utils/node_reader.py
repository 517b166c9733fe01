# -*- coding: utf-8 -*-
"""Read, in one go, everything about a host that decisions need, and print it as one JSON line.

Python 2.7 and 3, standard library only, reads and never writes. The action plugin node_facts pipes it, packed with
processes and environment_tree (hadoop_dl.host_script), into the host's Python; tests call read(root) on recorded trees.
A fact that cannot be read is null: the plan decides what its absence means.

Sources of the layouts read here: os-release(5), proc(5), the kernel's Documentation/ABI/testing/sysfs-bus-pci,
pci.ids (10de is NVIDIA, 1002 AMD; class 03 is a display controller, 0680 a bridge such as NVSwitch), UEFI 2.10 section 3.3 (SecureBoot).
"""

from __future__ import absolute_import, division, print_function

import glob
import hashlib
import json
import os
import re
import sys

try:
    import environment_tree
    import processes
except ImportError:  # inside a module's payload
    from ansible.module_utils import environment_tree, processes

ROOT = "/opt/deeplearning"
COMMAND_TIMEOUT = 20  # seconds; nvidia-smi on a sick GPU never returns
READ_TIMEOUT = 120  # seconds for everything; the files of a large environment take one
CPU_FLAGS = ("sse4_1", "sse4_2", "avx", "avx2", "fma", "avx512f")
MODULES = ("nvidia", "nvidia_uvm", "nouveau", "amdgpu")
PACKAGES = ("kernel", "kernel-devel", "kernel-headers", "nvidia-driver", "nvidia-driver-cuda", "dkms", "cuda-drivers")
# The newest PCI device in compat/gpu_devices.yml (tests/unit/test_node_reader.py compares): only above it is nvidia-smi
# asked for the compute capability, which takes up to seconds.
NEWEST_DEVICE = "31c3"
LIBRARIES = ("/usr/lib64", "/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib/x86_64-linux-gnu")
# Where a kernel's tree has NVIDIA's module: dkms on RHEL (extra) and Debian (updates/dkms), NVIDIA's precompiled packages
# (kmod-nvidia.spec in https://github.com/NVIDIA/yum-packaging-precompiled-kmod), its .run file (kernel/drivers/video), weak-modules.
MODULE_PLACES = (
    "extra",
    "extra/*",
    "extra/drivers/video/nvidia",
    "updates",
    "updates/*",
    "kernel/drivers/video",
    "weak-updates/*",
)
# Debian's names carry -current, and -open for the open module.
MODULE_NAME = re.compile(r"nvidia(-current(-open)?)?\.ko(\.\w+)?$")
HADOOP_HOMES = (
    ("cdh", "/opt/cloudera/parcels/CDH/lib/hadoop"),
    ("hdp", "/usr/hdp/current/hadoop-client"),
    ("mapr", "/opt/mapr/hadoop/hadoop-*"),
    ("apache", "/opt/hadoop"),
    ("apache", "/usr/local/hadoop"),
    ("apache", "/usr/lib/hadoop"),
)
JAVA_HOMES = ("/usr/java/default", "/usr/java/*", "/usr/lib/jvm/*", "/opt/java/*")


def text(path):
    """The file's content without surrounding space, or None where it cannot be read."""
    try:
        with open(path, "rb") as handle:
            return handle.read().decode("utf-8", "replace").strip()
    except (IOError, OSError):
        return None


def version_key(version):
    """Sort key for kernel releases and versions: runs of digits compare as numbers."""
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.findall(r"\d+|[a-z]+", version)]


class Reader(object):
    """Reads one host whose file system begins at root."""

    def __init__(self, root="/"):
        self.root = root.rstrip("/")
        self.unanswered = []  # what was asked, and did not answer in time

    def at(self, path):
        return self.root + path

    def text(self, path):
        return text(self.at(path))

    def glob(self, pattern):
        return sorted(path[len(self.root) :] for path in glob.glob(self.at(pattern)))

    def exists(self, path):
        return os.path.exists(self.at(path))

    def run(self, argv, accepted=(0,)):
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
        model = re.search(r"^model name\s*:\s*(.*)$", info, re.M)
        return {
            "model": model.group(1) if model else None,
            "count": len(re.findall(r"^processor\s*:", info, re.M)) or None,
            "features": [flag for flag in CPU_FLAGS if flag in present] if match else None,
        }

    def memory(self):
        values = dict(re.findall(r"^(\w+):\s+(\d+)", self.text("/proc/meminfo") or "", re.M))
        return {
            name: int(values[key]) // 1024 if key in values else None
            for name, key in (("total_mb", "MemTotal"), ("available_mb", "MemAvailable"))
        }

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

    def default_kernel(self, installed):
        """The release that the next boot starts: what grub saved, else the newest installed one."""
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
        loaded = [line.split()[0] for line in (self.text("/proc/modules") or "").splitlines() if line]
        return {
            "running": running,
            "installed": installed,
            "default_boot": self.default_kernel(installed),
            "headers": headers,
            "modules": [name for name in MODULES if name in loaded],
        }

    def secure_boot(self):
        """True or False on UEFI hosts; None on others. The variable is 4 attribute bytes and one value byte."""
        for path in glob.glob(self.at("/sys/firmware/efi/efivars/SecureBoot-*")):
            try:
                with open(path, "rb") as handle:
                    return handle.read()[4:5] == b"\x01"
            except (IOError, OSError):
                return None
        return None

    def pci(self):
        """NVIDIA GPUs, GPUs of others, and NVSwitches, by sysfs."""
        gpus, others, switches = [], [], 0
        for path in self.glob("/sys/bus/pci/devices/*"):
            kind = self.text(path + "/class") or ""
            vendor = (self.text(path + "/vendor") or "").replace("0x", "")
            entry = {
                "address": os.path.basename(path),
                "vendor": vendor,
                "device": (self.text(path + "/device") or "").replace("0x", ""),
            }
            if vendor == "10de" and kind.startswith(("0x0300", "0x0302")):
                gpus.append(entry)
            elif vendor == "10de" and kind.startswith("0x0680"):
                switches += 1
            elif vendor == "1002" and kind.startswith(("0x0300", "0x0302", "0x0380")):
                others.append(entry)
        return gpus, others, switches

    def nvidia(self):
        gpus, others, switches = self.pci()
        kind, running = self.loaded_driver()
        listed = None
        if not gpus and self.exists("/usr/bin/nvidia-smi"):  # no PCI bus to read here, as in a container
            output = self.run(["/usr/bin/nvidia-smi", "-L"])
            listed = re.findall(r"^GPU \d+: (.*?) \(UUID", output or "", re.M) if output is not None else None
        if running and any(gpu["device"] > NEWEST_DEVICE for gpu in gpus):
            self.add_capabilities(gpus)
        return {
            "gpus": gpus,
            "other_gpus": others,
            "nvswitches": switches,
            "listed": listed,
            "driver": running,
            "module": kind,
            "installed": self.driver_library(),
            "module_kernels": [path.split("/")[3] for path in self.glob("/lib/modules/*") if self.module_files(path)],
        }

    def add_capabilities(self, gpus):
        """What nvidia-smi says of GPUs that the resolver's table cannot have; an old one refuses the field, with status 2."""
        argv = ["/usr/bin/nvidia-smi", "--query-gpu=pci.bus_id,compute_cap", "--format=csv,noheader"]
        output = self.run(argv) if self.exists(argv[0]) else None
        # 00000000:3B:00.0, 9.0; sysfs writes the domain with four digits, and small letters.
        found = re.findall(r"^\s*[0-9A-F]{4}([0-9A-F]{4}:[0-9A-F:.]+), (\d+\.\d)\s*$", output or "", re.M | re.I)
        known = dict((address.lower(), capability) for address, capability in found)
        for gpu in gpus:
            if gpu["address"].lower() in known:
                gpu["compute_cap"] = known[gpu["address"].lower()]

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
        found = []
        for place in ("/usr/local/cuda*/lib64", "/usr/local/cuda-*/" + name + "-*/lib*") + LIBRARIES:
            for path in self.glob(place + "/lib" + name + ".so.*"):
                match = re.match(r"\d+(\.\d+)*$", os.path.basename(path)[len("lib" + name + ".so.") :])
                found += [match.group(0)] if match else []
        return sorted(set(found), key=version_key)

    def brought(self):
        """Versions of CUDA, cuDNN and NCCL that this project's roles installed, by their own records."""
        found = {}
        for name in ("cuda", "cudnn", "nccl"):
            try:
                versions = json.loads(self.text(ROOT + "/etc/gpu-check-%s.json" % name) or "{}").get(name, [])
                found[name] = sorted(versions, key=version_key)
            except (ValueError, AttributeError, TypeError):
                found[name] = []  # a torn record: the receipt beside it tells
        return found

    def installed_items(self):
        """The entries of cudnn_versions and nccl_versions that this project's roles installed, by their own records."""
        found = {}
        for name in ("cudnn", "nccl"):
            try:
                record = json.loads(self.text(ROOT + "/etc/gpu-check-%s.json" % name) or "{}")
                found[name + "_items"] = list(record.get(name + "_items") or [])
            except (ValueError, AttributeError, TypeError):
                found[name + "_items"] = []
        return found

    def pythons(self):
        """Interpreters by version, such as {"2.7": "/usr/bin/python2.7"}."""
        found = {}
        for directory in ("/usr/local/bin", "/usr/bin"):
            for path in self.glob(directory + "/python[23].*"):
                match = re.match(r".*/python(\d\.\d+)$", path)
                if match:
                    found[match.group(1)] = path
        return found

    def java(self):
        """Java homes by version, such as [{"home": "/usr/lib/jvm/java-11", "version": "11.0.21", "major": "11"}]."""
        found, seen = [], set()
        for home in [home for pattern in JAVA_HOMES for home in self.glob(pattern)]:
            real = os.path.realpath(self.at(home))
            if real in seen or not (os.path.exists(real + "/bin/java") or os.path.exists(real + "/jre/bin/java")):
                continue
            seen.add(real)
            match = re.search(r'JAVA_VERSION="([^"]+)"', text(real + "/release") or "")
            version = match.group(1) if match else None
            major = re.sub(r"^1\.", "", version).split(".")[0].split("_")[0] if version else None
            found.append({"home": home, "version": version, "major": major})
        return found

    def hadoop(self):
        for distribution, pattern in HADOOP_HOMES:
            for home in self.glob(pattern):
                if not (self.exists(home + "/bin/hadoop") or self.exists(home + "/libexec")):
                    continue
                jars = [
                    path
                    for place in ("/share/hadoop/common", "", "/lib")
                    for path in self.glob(home + place + "/hadoop-common-[0-9]*.jar")
                ]
                match = re.search(r"hadoop-common-(\d[\w.\-]*?)(?:-tests)?\.jar", jars[0]) if jars else None
                conf = "/etc/hadoop/conf" if self.exists("/etc/hadoop/conf") else home + "/etc/hadoop"
                return {
                    "distribution": distribution,
                    "home": home,
                    "version": match.group(1) if match else None,
                    "conf_dir": conf if self.exists(conf) else None,
                }
        return None

    def packages(self):
        """Versions of the packages that decide about kernels and drivers, from rpm or dpkg."""
        if self.exists("/var/lib/dpkg/status") and self.operating_system()["family"] == "Debian":
            pattern = re.compile(
                r"^Package: (nvidia-driver\S*|nvidia-kernel\S*|linux-image-\S+|linux-headers-\S+|dkms)$.*?^Status: (\S+ \S+ \S+)$.*?^Version: (\S+)$",
                re.M | re.S,
            )
            blocks = (self.text("/var/lib/dpkg/status") or "").split("\n\n")
            found = {}
            for block in blocks:
                match = pattern.search(block)
                if match and match.group(2).endswith(" installed"):
                    found.setdefault(match.group(1), []).append(match.group(3))
            return found
        output = self.text("/.packages.rpm") if self.root else None  # a recorded tree keeps the answer in a file
        if not self.root and self.exists("/usr/bin/rpm"):
            query = ["/usr/bin/rpm", "-q", "--qf", "%{NAME} %{VERSION}-%{RELEASE}.%{ARCH}\\n"] + list(PACKAGES)
            output = self.run(query, accepted=range(len(PACKAGES) + 1))  # the status counts those that are missing
        found = {}
        for line in (output or "").splitlines():
            if re.match(r"^\S+ \S+$", line):
                found.setdefault(line.split()[0], []).append(line.split()[1])
        return found

    def disk_free_mb(self):
        result = {}
        for path in ("/opt", "/usr", "/tmp"):
            existing = self.at(path)
            while not os.path.exists(existing):
                existing = os.path.dirname(existing)
            stat = os.statvfs(existing)
            result[path] = stat.f_bavail * stat.f_frsize // (1024 * 1024)
        return result

    def receipts(self):
        """What the playbooks wrote down after each role, and whether the files still are what they wrote."""
        found = {}
        for path in self.glob(ROOT + "/state/*.json"):
            try:
                receipt = json.loads(self.text(path) or "")
                problem = self.receipt_problem(receipt)
                found[os.path.basename(path)[: -len(".json")]] = {"digest": receipt["digest"], "problem": problem}
            except (ValueError, KeyError, TypeError, AttributeError):
                found[os.path.basename(path)[: -len(".json")]] = {
                    "digest": None,
                    "problem": "%s is not readable" % path,
                }
        return found

    def receipt_problem(self, receipt):
        """The first difference between a receipt and the host, as a sentence; None where there is none."""
        for path, target in sorted(receipt.get("links", {}).items()):
            if not os.path.islink(self.at(path)) or os.readlink(self.at(path)) != target:
                return "%s does not point to %s" % (path, target)
        for path, size in sorted(receipt.get("sizes", {}).items()):
            if not os.path.isfile(self.at(path)) or os.path.getsize(self.at(path)) != size:
                return "%s is missing or not %d bytes long" % (path, size)
        for path, digest in sorted(receipt.get("files", {}).items()):
            try:
                with open(self.at(path), "rb") as handle:
                    if hashlib.sha256(handle.read()).hexdigest() != digest:
                        return "%s was changed" % path
            except (IOError, OSError):
                return "%s is missing" % path
        return None

    def environments(self):
        """Environments by name; problem is None for one that is sealed and intact, also where files were added."""
        found = {}
        for path in self.glob(ROOT + "/envs/*"):
            name = os.path.basename(path)  # a link; its trees are NAME.1, NAME.2, and NAME.client has settings
            if name.startswith(".") or re.search(r"\.(\d+|client)$", name) or not os.path.isdir(self.at(path)):
                continue
            problem, added = environment_tree.state(self.at(path)) if environment_tree else (None, [])
            found[name] = {"problem": problem}
            if added:
                found[name]["added"] = added[:3] + ["and %d more" % (len(added) - 3)] * (len(added) > 3)
        return found

    def deeplearning(self):
        link = self.at(ROOT + "/current")
        return {
            "current": os.path.basename(os.readlink(link)) if os.path.islink(link) else None,
            "environments": self.environments(),
            "receipts": self.receipts(),
        }

    def read(self):
        memory = self.memory()
        return {
            "schema": 1,
            "hostname": self.text("/proc/sys/kernel/hostname"),
            "architecture": os.uname()[4],
            "os": self.operating_system(),
            "cpu": self.cpu(),
            "memory_mb": memory["total_mb"],
            "glibc": self.glibc(),
            "kernel": self.kernel(),
            "secure_boot": self.secure_boot(),
            "nvidia": self.nvidia(),
            "cuda": self.cuda(),
            "brought": dict(self.brought(), **self.installed_items()),
            "pythons": self.pythons(),
            "java": self.java(),
            "hadoop": self.hadoop(),
            "packages": self.packages(),
            "cdsw": self.exists("/etc/cdsw/config/cdsw.conf"),
            "unanswered": self.unanswered,
            "deeplearning": self.deeplearning(),
            "volatile": {"memory_available_mb": memory["available_mb"], "disk_free_mb": self.disk_free_mb()},
        }


def read(root="/"):
    """Everything about the host whose file system begins at root, as a mapping that JSON can carry."""
    return Reader(root).read()


def main():
    try:
        answer = processes.limited(read, READ_TIMEOUT)
    except processes.Late as late:
        answer = {
            "late": "the host accepts connections, but reading it gave %s. A disk or a network file system that does not "
            "answer does this; look for processes in state D (ps -eo pid,stat,args), repair the host, and run again"
            % late
        }
    sys.stdout.write(json.dumps(answer, sort_keys=True) + "\n")
