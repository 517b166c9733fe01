"""What a state of the driver or of a container means, as a sentence: required, found, what to do."""

import os

from gpu_check.kernel_log import reasons
from gpu_check.questions import version

NVIDIA = "/usr/local/nvidia"  # where an engine of CDSW up to 1.5 has its host's driver: bin, lib, lib64 of NVIDIA_LIBRARY_PATH
LOADER = (
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
)  # Ubuntu's loader searches them; from CDSW 1.9 the driver is here
TIMEOUT = 30  # seconds; nvidia-smi on a sick GPU never returns


def no_gpus(host):
    """No GPU was handed into this container."""
    return "This %s was started without GPUs: no /dev/nvidia0 is here. %s" % (
        host.place(),
        "Start a session with one or more; where none can be chosen, an administrator must allow them (CDSW's GPU support, and the maximum of GPUs in Admin > Engines, which is 0 at first)."
        if host.engine()
        else "Devices must be handed in: docker --gpus, YARN's GPU plugin, a Kubernetes limit for nvidia.com/gpu.",
    )


def no_library(host, soname):
    """A library of the driver is not found."""
    path = host.unreached(soname)
    if path and os.path.basename(path) != soname:
        return (
            "The loader must find %s, but this %s has the driver only as %s. Link it: ln -s %s $HOME/%s, and set LD_LIBRARY_PATH=$HOME; "
            "or let the image's Dockerfile link it." % (soname, host.place(), path, path, soname)
        )
    if path:
        return (
            "The loader must find %s but does not search where it is, in %s. Set LD_LIBRARY_PATH=%s/lib:%s/lib64%s."
            % (
                soname,
                os.path.dirname(path),
                NVIDIA,
                NVIDIA,
                " (Admin > Engines, or the project's settings) and start a new session" if host.engine() else "",
            )
        )
    if not host.contained():
        return (
            "The linker must find %s but its cache has none. Run ldconfig; if that does not help, playbooks/gpu.yml."
            % soname
        )
    return "The driver's %s must be in this %s, but neither LD_LIBRARY_PATH, the linker cache, %s nor %s has it. %s" % (
        soname,
        host.place(),
        NVIDIA,
        LOADER[1],
        "Start a session with GPUs; if it has some: up to CDSW 1.5, NVIDIA_LIBRARY_PATH in /etc/cdsw/config/cdsw.conf (or in Cloudera Manager) names no "
        "directory with lib64; from 1.6 there is no path to set, so restart CDSW after a change of the driver."
        if host.engine()
        else "Let the container engine hand it in (docker --gpus), or mount the host's driver there.",
    )


def two_versions(host):
    """The library in a container is of another version than the module of its host; None if both have the same version."""
    library, loaded = host.library(), host.loaded()
    if library and loaded and library == loaded:
        return None
    path = host.reached("libcuda.so.1") or host.unreached("libcuda.so.1")
    if loaded and version(library) > version(loaded):
        cause = "The host still runs the older module: reboot it, or hand in the other version's files."
    elif host.engine() and (path or "").startswith(NVIDIA):
        cause = (
            "The driver was changed on the host, and NVIDIA_LIBRARY_PATH in /etc/cdsw/config/cdsw.conf (or in Cloudera Manager) still names the older "
            "version's directory: correct it on every CDSW host, restart CDSW, and start a new session."
        )
    elif host.engine():
        cause = (
            "The driver was changed on the host after this session got its files: start a new one; if that does not help, restart CDSW. "
            "From CDSW 1.6 there is no path to correct. An image must not have a libcuda.so of its own."
        )
    else:
        cause = "The driver was changed on the host after this container got its files: start a new one, or correct what mounts them."
    return (
        "The driver's library and the host's module must be one version; this %s has library %s%s, its host module %s. %s"
        % (
            host.place(),
            library or "none",
            " in %s" % os.path.dirname(path) if path else "",
            loaded or "of another version",
            cause,
        )
    )


def smi_problem(host, status, output):
    """What a failing nvidia-smi means, and what to do."""
    first = (output.strip().splitlines() or ["nothing"])[0]
    problem = container_problem(host, status, output, first) if host.contained() else None
    if problem:
        return problem
    if status is None:
        return (
            "nvidia-smi is required to ask the GPUs but no such command was found. Run playbooks/gpu.yml for this host."
        )
    if status < 0:
        return (
            "nvidia-smi must answer within %d seconds but hung: a GPU is sick. Look at dmesg for Xid, and reboot the host."
            % TIMEOUT
        )
    if "couldn't communicate" in output:
        return "The NVIDIA driver must run in the kernel but does not (nvidia-smi: %s). Kernel %s %s. %s" % (
            first,
            host.running_kernel(),
            module_words(host, host.running_kernel()),
            reasons(host) or "Load it with modprobe nvidia, read dmesg, or reboot into the kernel that has the module.",
        )
    if "version mismatch" in output:
        return (
            "The library and the loaded module must be one version; the library is %s, the module %s (nvidia-smi: %s). "
            "The driver was changed and the old module still runs: reboot the host, or unload it with modprobe -r."
            % (host.library(), host.loaded(), first)
        )
    if "Insufficient Permissions" in output:
        return (
            "nvidia-smi must be able to open /dev/nvidia* but may not: %s. Look at their rights, and at the container's device rules."
            % first
        )
    if "No devices" in output and host.in_yarn():
        return (
            "This YARN container was given no GPU: nvidia-smi lists none of its host's. Ask for them when the job is submitted "
            "(spark.executor.resource.gpu.amount, yarn.io/gpu), and let YARN know them: yarn.nodemanager.resource-plugins."
        )
    if "No devices" in output:
        return "nvidia-smi must list GPUs but reports: %s. %s" % (
            first,
            reasons(host) or "Look for cards that are off the bus: lspci -d 10de:; dmesg | grep -i nvrm",
        )
    return "nvidia-smi must answer but ended with status %s: %s. %s" % (
        status,
        first,
        reasons(host) or "Look at dmesg | grep -i -e nvrm -e xid",
    )


def container_problem(host, status, output, first):
    """The same if the cause is how the container was started; None for another cause."""
    if status is None:
        return "nvidia-smi is required to ask the GPUs but neither PATH nor %s/bin has it. %s" % (
            NVIDIA,
            "What hands the driver in must hand in its bin, too."
            if host.reached("libnvidia-ml.so.1")
            else no_library(host, "libnvidia-ml.so.1"),
        )
    if "version mismatch" in output:
        return (
            two_versions(host)
            or "nvidia-smi finds a libnvidia-ml.so.1 of another version than the module %s (%s), in %s: remove that one."
            % (
                host.loaded(),
                first,
                os.path.dirname(host.reached("libnvidia-ml.so.1") or "its own directories"),
            )
        )
    if "No devices" in output and not host.granted():
        return no_gpus(host)
    if "NVML: Unknown Error" in output:  # github.com/NVIDIA/nvidia-container-toolkit/issues/48
        return (
            "This %s must be able to open its GPUs but may not any more (nvidia-smi: %s): systemd on the host was reloaded after it started, which took "
            "them from its cgroup. Start a new one." % (host.place(), first)
        )
    if "couldn't find libnvidia-ml" in output:
        return no_library(host, "libnvidia-ml.so.1")
    if "couldn't communicate" in output:
        return "The NVIDIA driver must run on the host of this %s and its devices must be here (nvidia-smi: %s). %s" % (
            host.place(),
            first,
            "Ask on the host: /opt/deeplearning/bin/gpu-check driver_runs" if host.granted() else no_gpus(host),
        )
    return None


def how_to_install(host, otherwise):
    """How a library of CUDA comes to where it is missing."""
    if not host.contained():
        return otherwise
    return "build what holds it into the image, or mount the host's /usr/local/cuda-X.Y and name its lib64 in LD_LIBRARY_PATH."


def module_words(host, kernel):
    module = host.module_of(kernel)
    return "has the module %s" % module[0] if module else "has no module of NVIDIA's"
