"""Recorded hosts as short descriptions: `build(root, TREES["p100"])` writes the files that the node reader reads.

The contents follow what such hosts show: os-release(5), proc(5), sysfs-bus-pci, the driver's /proc/driver/nvidia, and
UEFI's SecureBoot variable (four attribute bytes, then the value).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

SYSTEMS = {
    "rhel7": {
        "release": 'NAME="Red Hat Enterprise Linux Server"\nID="rhel"\nID_LIKE="fedora"\nVERSION_ID="7.9"\nPRETTY_NAME="Red Hat Enterprise Linux Server 7.9 (Maipo)"\n',
        "kernel": "3.10.0-1160.el7.x86_64",
        "newer": "3.10.0-1160.119.1.el7.x86_64",
        "glibc": "2.17",
        "pythons": ("2.7", "3.6"),
    },
    "rhel9": {
        "release": 'NAME="Red Hat Enterprise Linux"\nID="rhel"\nID_LIKE="fedora"\nVERSION_ID="9.4"\nPRETTY_NAME="Red Hat Enterprise Linux 9.4 (Plow)"\n',
        "kernel": "5.14.0-427.13.1.el9_4.x86_64",
        "newer": "5.14.0-427.40.1.el9_4.x86_64",
        "glibc": "2.34",
        "pythons": ("3.9", "3.11"),
    },
    "debian12": {
        "release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n',
        "kernel": "6.1.0-28-amd64",
        "newer": "6.1.0-31-amd64",
        "glibc": "2.36",
        "pythons": ("3.11",),
    },
}
FLAGS = {
    "broadwell": "fpu sse4_1 sse4_2 avx avx2 fma",
    "icelake": "fpu sse4_1 sse4_2 avx avx2 fma avx512f",
    "westmere": "fpu sse4_1 sse4_2",
}
PROPRIETARY = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Sat Apr  6 03:07:24 CDT 2019\nGCC version:  gcc version 4.8.5\n"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (dvs-builder@U16)\n"
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
GPU_CLASS, VGA_CLASS, BRIDGE_CLASS, DISPLAY_CLASS = "030200", "030000", "068000", "038000"


@dataclass(frozen=True)
class Tree:
    """One host. `gpus` are NVIDIA device ids, `others` (vendor, device, class) of everything else on the bus."""

    system: str = "rhel7"
    cpu: str = "broadwell"
    gpus: tuple[str, ...] = ()
    gpu_class: str = GPU_CLASS
    nvswitches: int = 0
    others: tuple[tuple[str, str, str], ...] = (("8086", "a1c1", "060100"), ("102b", "0536", VGA_CLASS))
    driver: str | None = None
    module: str = "proprietary"
    modules: tuple[str, ...] = ()
    headers: bool = True
    pending: bool = False
    secure_boot: bool | None = None
    cuda: str | None = None
    cudnn: str | None = None
    java: tuple[tuple[str, str], ...] = (("java-1.8.0-openjdk", "1.8.0_412"),)
    hadoop: str | None = "/opt/cloudera/parcels/CDH/lib/hadoop/hadoop-common-2.6.0-cdh5.16.2.jar"
    cdsw: bool = False


LOADED = ("nvidia_uvm", "nvidia")
BARE = Tree()
TREES = {
    "no_gpu": BARE,
    "p100": replace(BARE, gpus=("15f8", "15f8"), driver="418.67", modules=LOADED, cuda="10.0", cudnn="7.6.5"),
    "v100": replace(BARE, gpus=("1db4",) * 4, driver="450.80.02", modules=LOADED, cuda="11.0", cudnn="8.0.5"),
    "t4": replace(BARE, system="rhel9", gpus=("1eb8",), driver="580.95.05", module="open", modules=LOADED, hadoop=None),
    "a100_nvswitch": replace(
        BARE,
        system="rhel9",
        cpu="icelake",
        gpus=("20b2",) * 8,
        nvswitches=6,
        driver="535.183.01",
        modules=LOADED,
        cuda="12.2",
        cudnn="8.9.7",
    ),
    "h100": replace(
        BARE, system="rhel9", cpu="icelake", gpus=("2330",) * 8, nvswitches=4, driver="580.95.05", module="open",
        modules=LOADED,
    ),
    "mixed": replace(BARE, gpus=("15f8", "1db4"), driver="450.80.02", modules=LOADED),
    "amd_only": replace(BARE, system="rhel9", others=(("1002", "740f", DISPLAY_CLASS), ("1002", "740f", DISPLAY_CLASS))),
    "nouveau": replace(BARE, gpus=("15f8",), modules=("nouveau", "drm")),
    "secure_boot": replace(BARE, system="rhel9", gpus=("1eb8",), secure_boot=True, hadoop=None),
    "no_headers": replace(BARE, gpus=("15f8",), headers=False),
    "pending_kernel": replace(BARE, gpus=("15f8",), pending=True, driver="418.67", modules=LOADED),
    "old_cpu": replace(BARE, cpu="westmere"),
    "vga_card": replace(BARE, gpus=("1b38",), gpu_class=VGA_CLASS),
    "cdsw": replace(BARE, gpus=("15f8",), driver="418.67", modules=LOADED, cdsw=True),
    "cdsw_mixed": replace(BARE, gpus=("15f8", "1db4"), cdsw=True),
    "pending_new": replace(BARE, gpus=("15f8",), pending=True),
    "old_driver": replace(BARE, system="rhel9", gpus=("1eb8",), driver="470.82.01", modules=LOADED),
    "debian": replace(
        BARE, system="debian12", gpus=("1eb8",), java=(("java-17-openjdk-amd64", "17.0.13"),),
        hadoop="/opt/hadoop/share/hadoop/common/hadoop-common-3.3.6.jar",
    ),
}  # fmt: skip


def write(root: Path, files: Mapping[str, str]) -> None:
    """Files below a host's root, by their paths there."""
    for name, content in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


def build(root: Path, tree: Tree) -> Path:
    """Write the host under root, and return root."""
    system = SYSTEMS[tree.system]
    kernel, newer = str(system["kernel"]), str(system["newer"])
    files = {
        "/etc/os-release": str(system["release"]),
        "/proc/sys/kernel/osrelease": kernel + "\n",
        "/proc/sys/kernel/hostname": "data1\n",
        "/proc/cpuinfo": "".join(
            f"processor\t: {n}\nmodel name\t: {tree.cpu}\nflags\t\t: {FLAGS[tree.cpu]}\n\n" for n in range(2)
        ),
        "/proc/meminfo": "MemTotal:       263921384 kB\nMemAvailable:   100000000 kB\n",
        "/proc/modules": "".join(f"{name} 1 0 - Live 0x0000000000000000\n" for name in tree.modules),
        f"/boot/vmlinuz-{kernel}": "",
        f"/lib64/libc-{system['glibc']}.so": "",
        **{f"/usr/bin/python{python}": "" for python in system["pythons"]},
    }
    if tree.headers:
        place = "/usr/src/linux-headers-" if tree.system == "debian12" else "/usr/src/kernels/"
        files[f"{place}{kernel}/Makefile"] = ""
    if tree.pending:
        files[f"/boot/vmlinuz-{newer}"] = ""
    if tree.driver:
        libraries = "/usr/lib/x86_64-linux-gnu" if tree.system == "debian12" else "/usr/lib64"
        files |= {
            "/proc/driver/nvidia/version": (OPEN if tree.module == "open" else PROPRIETARY).format(tree.driver),
            f"{libraries}/libcuda.so.{tree.driver}": "",
            f"/lib/modules/{kernel}/extra/nvidia.ko": "",
        }
    if tree.cuda:
        files[f"/usr/local/cuda-{tree.cuda}/bin/nvcc"] = ""
        files[f"/usr/local/cuda-{tree.cuda}/lib64/libcudnn.so.{tree.cudnn}"] = ""
    for name, version in tree.java:
        files[f"/usr/lib/jvm/{name}/bin/java"] = ""
        files[f"/usr/lib/jvm/{name}/release"] = f'JAVA_VERSION="{version}"\n'
    if tree.hadoop:
        home = tree.hadoop.partition("/share/")[0] if "/share/" in tree.hadoop else tree.hadoop.rpartition("/")[0]
        files |= {tree.hadoop: "", f"{home}/bin/hadoop": "", "/etc/hadoop/conf/core-site.xml": "<configuration/>\n"}
    if tree.cdsw:
        files["/etc/cdsw/config/cdsw.conf"] = "NVIDIA_GPU_ENABLE=true\n"
    gpus = [("10de", device, tree.gpu_class) for device in tree.gpus]
    bus = [*tree.others, *gpus, *[("10de", "1af1", BRIDGE_CLASS)] * tree.nvswitches]
    for number, (vendor, device, kind) in enumerate(bus, 1):
        base = f"/sys/bus/pci/devices/0000:{number:02x}:00.0"
        files |= {f"{base}/vendor": f"0x{vendor}\n", f"{base}/device": f"0x{device}\n", f"{base}/class": f"0x{kind}\n"}
    write(root, files)
    if tree.secure_boot is not None:
        path = root / SECURE_BOOT.lstrip("/")
        path.parent.mkdir(parents=True)
        path.write_bytes(b"\x06\x00\x00\x00" + bytes([tree.secure_boot]))
    return root
