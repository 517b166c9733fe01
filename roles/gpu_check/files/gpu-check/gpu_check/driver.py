"""Questions about GPUs that must be there and the driver that serves them."""

import os
import stat

from ansible.module_utils.hadoop_dl_host import host_cdsw as workbench
from ansible.module_utils.hadoop_dl_host import processes

from gpu_check.cells import sick
from gpu_check.kernel_log import reasons
from gpu_check.questions import Fail, Skip, check, host_check, version
from gpu_check.sentences import TIMEOUT, no_gpus, no_library, smi_problem, two_versions

WITHOUT_PATH = "1.6"  # the first release of CDSW that finds the driver itself
NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm")


@host_check
def gpus_on_pci_as_declared(host):
    """GPUs on the PCI bus = declared"""
    count = len(host.pci())
    if host.declared() is None:
        raise Skip("gpu_count is not set in the inventory")
    if count == 0 and host.listed():
        raise Skip("a container without a PCI bus of its own")
    if count != host.declared():
        raise Fail(
            "The inventory promises %d GPUs, and the PCI bus shows %d. Look with lspci -d 10de:, or correct gpu_count."
            % (host.declared(), count)
        )
    return "%d GPUs" % count


@check
def gpus_by_driver_as_declared(host):
    """GPUs by nvidia-smi = by PCI = declared"""
    host.requires_gpu()
    status, output = host.run("nvidia-smi", "-L")
    if status != 0:
        raise Fail(smi_problem(host, status, output))
    listed = len(host.listed())
    promises = ((host.declared(), "the inventory promises"), (len(host.pci()) or None, "the PCI bus shows"))
    if host.contained():  # it may have been given some of its host's
        promises = ((host.count(), "this %s was given" % host.place()),)
    elif host.yarn() and 0 < listed <= (host.declared() or len(host.pci()) or listed):
        return "%d GPUs of its host's %d" % (listed, host.declared() or len(host.pci()) or listed)
    for required, source in promises:
        if required is not None and listed != required:
            raise Fail(
                "nvidia-smi must list the %d GPUs that %s but lists %d. %s"
                % (
                    required,
                    source,
                    listed,
                    reasons(host) or "Look at dmesg | grep -i -e nvrm -e xid for the missing one.",
                )
            )
    return "%d GPUs" % listed


@check
def driver_runs(host):
    """The driver answers"""
    host.requires_gpu()
    host.query("index", "driver_version")
    return "it answers"


@check
def versions_agree(host):
    """Module version = library version = package version"""
    if host.contained():
        return versions_in_a_container(host)
    if not host.has_driver():
        raise Skip("no driver is installed")
    versions = {"library": host.library()}
    if host.default_kernel() is not None:
        versions["installed module"] = (host.module_of(host.default_kernel()) or (None,))[0]
    if host.package():
        versions["package"] = host.package()
    if host.loaded():
        versions["loaded module"] = host.loaded()
    if host.expected.get("driver"):
        versions["required"] = host.expected["driver"]
    if len(set(versions.values())) != 1:
        listed = ", ".join("%s %s" % (name, value or "none") for name, value in sorted(versions.items()))
        raise Fail(
            "Module, library and package of the driver must be one version but are: %s. After a change of driver: reboot; else run playbooks/gpu.yml."
            % listed
        )
    return "%s" % versions["library"]


def versions_in_a_container(host):
    """The library came from outside, the module is the host's, and packages do not matter here."""
    host.requires_gpu()
    path = host.reached("libcuda.so.1") or host.unreached("libcuda.so.1")
    if not path:
        raise Fail(no_library(host, "libcuda.so.1"))
    if not host.library():
        raise Skip("the name of %s has no version; nvml_reachable checks whether it fits" % path)
    if not host.loaded():
        raise Fail(
            "The driver must run on the host of this %s, but /proc/driver/nvidia/version is missing. Ask on the host: /opt/deeplearning/bin/gpu-check"
            % host.place()
        )
    if two_versions(host):
        raise Fail(two_versions(host))
    return host.library()


@host_check
def module_for_boot_kernel(host):
    """The kernel of the next boot has a module that was built for it"""
    if not host.has_driver():
        raise Skip("no driver is installed")
    kernel = host.default_kernel()
    if kernel is None:
        raise Skip("no kernel is installed here, as in a container")
    module = host.module_of(kernel)
    if module is None:
        raise Fail(
            "Kernel %s starts at the next boot and requires a module of NVIDIA's but has none. Run playbooks/gpu.yml before a reboot (dkms autoinstall -k %s)."
            % (kernel, kernel)
        )
    if module[1] != kernel:
        raise Fail(
            "Kernel %s requires a module that was built for it; the one in its tree was built for %s. Run playbooks/gpu.yml before a reboot (dkms remove -k %s, then dkms install)."
            % (kernel, module[1], kernel)
        )
    return "%s for %s" % (module[0], kernel)


@host_check
def nouveau_absent(host):
    """nouveau is not loaded"""
    if "nouveau" in host.loaded_modules():
        raise Fail(
            "NVIDIA's driver requires that nouveau is not loaded, but it is. Run playbooks/gpu.yml (the initramfs loads it again), and reboot."
        )
    return "not loaded"


@check
def device_nodes(host):
    """Device nodes are there, and users may open them"""
    host.requires_gpu()
    if host.contained():
        return devices_in_a_container(host)
    if not host.loaded():
        raise Fail(
            "/dev/nvidia* require the driver to be loaded, but it is not. modprobe nvidia && nvidia-modprobe -c 0 -u"
        )
    nodes = host.granted()
    missing = [path for path in NODES if not host.exists(path)]
    if missing or len(nodes) < len(host.pci()):
        raise Fail(
            "%d GPUs require as many /dev/nvidiaN, /dev/nvidiactl and /dev/nvidia-uvm; found %s%s. Create them: nvidia-modprobe -c 0 -u. "
            "If they are missing after every boot, run playbooks/gpu.yml."
            % (len(host.pci()), ", ".join(nodes) or "none", ", without %s" % ", ".join(missing) if missing else "")
        )
    closed = [path for path in nodes + list(NODES) if os.stat(host.root + path).st_mode & stat.S_IRWXO & 0o6 != 0o6]
    if closed:
        raise Fail(
            "Jobs run as their users and must be able to read and write %s, but others may not. Look at NVreg_DeviceFileMode in /etc/modprobe.d."
            % ", ".join(closed)
        )
    return "%d GPUs" % len(nodes)


def devices_in_a_container(host):
    """Those that were handed in, and this user's right to open them."""
    nodes = host.granted()
    if not nodes:
        raise Fail(no_gpus(host))
    required = nodes + list(NODES)
    missing = [path for path in required if not host.exists(path)]
    if missing:
        raise Fail(
            "%d GPUs require %s as well, but this %s was not given it. On the host: nvidia-modprobe -c 0 -u; then start a new one."
            % (len(nodes), " and ".join(missing), host.place())
        )
    closed = [path for path in required if not os.access(host.root + path, os.R_OK | os.W_OK)]
    if closed:
        raise Fail(
            "This user (uid %d) must be able to read and write %s but may not. On the host look at NVreg_DeviceFileMode in /etc/modprobe.d; here at the container's device rules."
            % (os.getuid(), ", ".join(closed))
        )
    return "%d GPUs, open for uid %d" % (len(nodes), os.getuid())


@host_check
def persistence(host):
    """Persistence is on"""
    host.requires_gpu()
    if host.expected.get("persistence") is False:
        raise Skip("nvidia_driver_persistence_enabled is false")
    off = [row[0] for row in host.query("index", "persistence_mode") if row[1] != "Enabled"]
    if off:
        raise Fail(
            "Persistence mode is off on GPU %s, so every job waits for the driver. Run systemctl enable --now nvidia-persistenced."
            % ", ".join(off)
        )
    return "on"


@check
def compute_mode(host):
    """Jobs may compute on every GPU"""
    host.requires_gpu()
    rows = host.query("index", "compute_mode")
    closed = [row[0] for row in sick(rows, "Default", "Exclusive_Process", "Exclusive_Thread")]
    if closed:
        raise Fail(
            "Jobs require a compute mode that lets them start; it is Prohibited for GPU %s. Set it: nvidia-smi -i %s -c DEFAULT"
            % (", ".join(closed), ",".join(closed))
        )
    return "; ".join("GPU %s: %s" % tuple(row) for row in rows)


@check
def driver_new_enough(host):
    """Driver >= what the stack requires"""
    minimum = host.expected.get("driver_min")
    if not minimum:
        raise Skip("the stack of this host names no oldest driver")
    if not host.library() and host.contained():
        return versions_in_a_container(host)
    if not host.library():
        raise Fail(
            "The stack of this host requires driver %s or newer, but none is installed. Run playbooks/gpu.yml."
            % minimum
        )
    if version(host.library()) < version(minimum):
        raise Fail(
            "The stack of this host requires driver %s or newer, and %s is installed. Upgrade with playbooks/upgrade_driver.yml, or choose an older stack."
            % (minimum, host.library())
        )
    return "%s >= %s" % (host.library(), minimum)


@host_check
def cdsw_hands_in_this_driver(host):
    """CDSW's setting names the driver that is installed"""
    parcel, settings = workbench.parcel_build(host), workbench.read_settings(host.text(workbench.CONF))
    if parcel is None and settings is None:
        raise Skip("no host of CDSW (%s)" % workbench.CONF)
    release = workbench.installed_release(host, parcel)
    if parcel is not None:
        raise Skip("CDSW %s: Cloudera Manager has its settings" % (release or "of an unknown release"))
    if settings.get("NVIDIA_GPU_ENABLE", "").lower() != "true":
        raise Skip("NVIDIA_GPU_ENABLE is not true in %s: engines get no GPU" % workbench.CONF)
    place, library = settings.get("NVIDIA_LIBRARY_PATH", ""), host.library()
    if release and version(release) >= version(WITHOUT_PATH):
        raise Skip("CDSW %s finds the driver itself; NVIDIA_LIBRARY_PATH is a setting up to 1.5" % release)
    if not place and not release:
        raise Skip("NVIDIA_LIBRARY_PATH is not set in %s: right from CDSW 1.6 on, required before" % workbench.CONF)
    handed = (
        [path for name in ("/lib64", "", "/lib") for path in host.glob(place + name + "/libcuda.so.*.*")]
        if place
        else []
    )
    driver_version = os.path.basename(handed[0])[len("libcuda.so.") :] if handed else None
    if library and driver_version == library:
        return "%s in %s" % (driver_version, place)
    raise Fail(
        "NVIDIA_LIBRARY_PATH in %s must name a directory with driver %s, the one that is installed; %s has %s. Correct it on every CDSW host after a "
        "change of driver, and restart CDSW; running engines keep what they have."
        % (
            workbench.CONF,
            library or "none",
            place or "it is not set and",
            "driver %s" % driver_version if driver_version else "no libcuda.so",
        )
    )


@check
def linker_finds_the_driver(host):
    """The loader finds libcuda and libnvidia-ml, and they exist"""
    if host.contained():
        host.requires_gpu()
    elif not host.has_driver():
        raise Skip("no driver is installed")
    paths = []
    for soname in ("libcuda.so.1", "libnvidia-ml.so.1"):
        path = host.reached(soname)
        if path is None:
            raise Fail(no_library(host, soname))
        if not host.exists(path):
            raise Fail(
                "The linker must find %s, but its cache points to %s, which is missing. Run ldconfig; if that does not help, playbooks/gpu.yml."
                % (soname, path)
            )
        paths.append(path)
    return ", ".join(paths)


NVML = {
    9: "the driver is not loaded: modprobe nvidia",
    4: "no permission for /dev/nvidia*",
    18: "module and library differ: reboot",
}


@check
def nvml_reachable(host):
    """NVML answers from Python"""
    host.requires_gpu()
    try:
        # In a child: a call that a sick GPU holds in the kernel does not come back.
        status = processes.limited(lambda: host.load("libnvidia-ml.so.1").nvmlInit_v2(), TIMEOUT)
    except processes.Late:
        raise Fail(smi_problem(host, -9, ""))
    except RuntimeError as error:
        if not host.reached("libnvidia-ml.so.1"):
            raise Fail(no_library(host, "libnvidia-ml.so.1"))
        raise Fail(
            "libnvidia-ml.so.1 must load but does not: %s. Run ldconfig, or playbooks/gpu.yml."
            % str(error).strip().splitlines()[-1]
        )
    if status == 18 and host.contained() and two_versions(host):
        raise Fail(two_versions(host))
    if status != 0:
        raise Fail("nvmlInit must return 0 but returned %d (%s)." % (status, NVML.get(status, "see nvmlReturn_t")))
    return "it answers"


@host_check
def no_reboot_waits(host):
    """The installed driver is the one that runs"""
    if not host.loaded():
        raise Skip("no driver is loaded")
    if host.library() and host.loaded() != host.library():
        raise Fail(
            "Driver %s is installed and %s runs: a reboot is due. Take the host out of YARN and reboot it."
            % (host.library(), host.loaded())
        )
    return host.loaded()
