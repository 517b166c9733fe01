#!/bin/sh
# Finds a Python for the script that follows: RHEL 7 has 2.7, RHEL 8 keeps one in libexec, engines of CDSW theirs in /usr/local.
# fmt: off
'''':; for p in /usr/bin/python3 /usr/libexec/platform-python /usr/bin/python2.7 /usr/bin/python /usr/local/bin/python3 /usr/local/bin/python2.7; do [ -x $p ] && exec $p "$0" "$@"; done; echo "gpu-check needs a Python 3, or 2.7, in /usr/bin or /usr/local/bin, and found none. Install one." >&2; exit 2 # '''
# fmt: on

"""Check this host's GPUs, driver and CUDA: one line for each question, PASS, FAIL or SKIP.

    gpu-check [--json] [--junit FILE] [--list] [NAME ...]

Reads, never writes. Exit status: 0 nothing failed, 1 something failed, 2 misuse. For the operator and for cron.
In a container (an engine of CDSW, docker, Kubernetes) it answers for the container's user; what only the host knows is a SKIP there.
What is expected stands in /opt/deeplearning/etc/gpu-check.json (and gpu-check-cuda.json, gpu-check-cudnn.json,
gpu-check-nccl.json): written by the roles. Every FAIL says what was expected, what was found, and what to do next.
"""

import ctypes
import glob
import json
import os
import re
import stat
import subprocess
import sys
import threading

ETC = "/opt/deeplearning/etc"
PYTHON = "/opt/deeplearning/current/bin/python"
NVIDIA = "/usr/local/nvidia"  # where an engine of CDSW has its host's driver: bin, lib, lib64 of NVIDIA_LIBRARY_PATH
CDSW_CONF = "/etc/cdsw/config/cdsw.conf"  # of installations from packages; Cloudera Manager keeps its own
TIMEOUT = 30  # seconds; nvidia-smi on a sick GPU never returns
SLOW = 240  # seconds; the first import of TensorFlow from a cold disk
CHECKS = []


# Runs in the environment's Python, 2.7 or 3, with TensorFlow 1 or 2: the product of the white paper, 2x3 by 3x2, in the
# form of TensorFlow 1 (a graph that is fed) and, where that is another one, of TensorFlow 2 (at once).
TENSORFLOW = r"""
def look():
    import tensorflow as tf
    from tensorflow.python.client import device_lib
    v1 = tf.compat.v1 if hasattr(getattr(tf, "compat", None), "v1") else tf
    gpus = [device.name for device in device_lib.list_local_devices() if device.device_type == "GPU"]
    place = "/device:GPU:0" if gpus else "/device:CPU:0"
    left, right = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]

    def graph():
        with tf.Graph().as_default():
            with tf.device(place):
                a, b = v1.placeholder(tf.float32, [2, 3]), v1.placeholder(tf.float32, [3, 2])
                product = tf.matmul(a, b)
            options, told = v1.RunOptions(output_partition_graphs=True), v1.RunMetadata()
            with v1.Session(config=v1.ConfigProto(allow_soft_placement=False)) as session:
                value = session.run(product, {a: left, b: right}, options, told)
            return value, [node.device for part in told.partition_graphs for node in part.node if "MatMul" in node.op]

    def at_once():
        with tf.device(place):
            product = tf.matmul(tf.constant(left), tf.constant(right))
        return product.numpy(), [product.device]

    products = {}
    for name, form in [("TF 1", graph)] + ([] if tf.__version__.startswith("1.") else [("TF 2", at_once)]):
        try:
            value, places = form()
            products[name] = {"value": value.tolist(), "places": places, "error": None}
        except Exception as error:
            products[name] = {"value": None, "places": [], "error": str(error).strip().splitlines()[0][:300]}
    return {"gpus": gpus, "cuda_build": bool(tf.test.is_built_with_cuda()), "products": products}
"""
ANSWER = "GPU-CHECK-ANSWER "


class Fail(Exception):
    """Its text has three parts: what is needed, what was found, what to do next."""


class Skip(Exception):
    """The question has no meaning on this host, and why."""


def check(function):
    CHECKS.append((function.__name__, function))
    return function


def host_check(function):
    """A question that only the host can answer: in a container it is neither well nor broken."""

    def ask(host):
        if host.contained():
            raise Skip(
                "this is about the host of this %s, and is asked there: /opt/deeplearning/bin/gpu-check %s"
                % (host.place(), function.__name__)
            )
        return function(host)

    ask.__name__, ask.__doc__ = function.__name__, function.__doc__
    return check(ask)


def version(text):
    return [int(part) for part in re.findall(r"\d+", text or "")]


class Host(object):
    """What the checks look at. Tests give it a root and answers for commands."""

    def __init__(self, root="", run=None, load=None):
        self.root = root
        self.execute = run or execute
        self.load = load or ctypes.CDLL
        self.answers = {}
        self.looks = {}
        self.expected = {}
        for name in ("gpu-check", "gpu-check-cuda", "gpu-check-cudnn", "gpu-check-nccl"):
            try:
                self.expected.update(json.loads(self.text("%s/%s.json" % (ETC, name)) or "{}"))
            except ValueError:
                raise Fail("%s/%s.json has to be JSON, and is not. Run the role again." % (ETC, name))

    def text(self, path):
        try:
            with open(self.root + path, "rb") as handle:
                return handle.read().decode("utf-8", "replace").strip()
        except (IOError, OSError):
            return None

    def glob(self, pattern):
        return sorted(path[len(self.root) :] for path in glob.glob(self.root + pattern))

    def exists(self, path):
        return os.path.exists(self.root + path)

    def contained(self):
        """Whether this is a container that is not its own host; one that booted systemd is taken for a host."""
        if self.exists("/run/systemd/system"):
            return False
        return bool(
            "KUBERNETES_SERVICE_HOST" in os.environ
            or any(name.startswith("CDSW_") for name in os.environ)
            or self.exists("/.dockerenv")
            or self.exists("/run/.containerenv")
            or re.search("docker|kubepods|containerd|libpod", self.text("/proc/1/cgroup") or "")
        )

    def engine(self):
        """Whether this is an engine of CDSW, which tells every session, job and worker about itself."""
        return self.contained() and any(name.startswith("CDSW_") for name in os.environ)

    def yarn(self):
        """Whether this is a YARN container that shares its host's files: its cgroup decides which GPUs it may open."""
        return not self.contained() and os.environ.get("CONTAINER_ID", "").startswith("container_")

    def place(self):
        return (
            "YARN container"
            if self.yarn()
            else "engine"
            if self.engine()
            else "container"
            if self.contained()
            else "host"
        )

    def granted(self):
        """Device nodes of the GPUs that are here: in a container, those that it was given."""
        return self.glob("/dev/nvidia[0-9]*")

    def reached(self, soname):
        """Where a process that starts here finds a library: LD_LIBRARY_PATH, then the linker cache; or None."""
        if self.contained():
            for directory in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
                if (
                    directory
                    and self.exists(directory + "/" + soname)
                    and not self.for_32_bits(directory + "/" + soname)
                ):
                    return directory + "/" + soname
        return cached(self, soname)

    def for_32_bits(self, path):
        """NVIDIA's lib holds what lib64 holds, for 32 bits; the loader passes over it."""
        with open(self.root + path, "rb") as handle:
            return handle.read(5) == b"\x7fELF\x01"

    def unreached(self, soname):
        """A library of the driver that was handed in and that no process finds, or None."""
        path = NVIDIA + "/lib64/" + soname
        return path if self.exists(path) else None

    def run(self, *argv):
        """Status and output of a command, asked once; status None where the command is missing."""
        if argv not in self.answers:
            self.answers[argv] = self.execute(argv)
        return self.answers[argv]

    def tensorflow(self, hidden=False):
        """What TensorFlow sees and computes (None where it does not come so far), and what it said; without GPUs if hidden."""
        if hidden and self.looks.get(False) and not (self.looks[False][0] or {"gpus": [0]})["gpus"]:
            return self.looks[False]  # there was nothing to hide
        if hidden not in self.looks:
            if not self.exists(PYTHON):
                if not os.path.islink(self.root + PYTHON):
                    hint = "; mount /opt/deeplearning of its host" if self.contained() else ""
                    raise Skip("no environment is installed here (%s)%s" % (PYTHON, hint))
                raise Fail(python_problem(self))
            program = TENSORFLOW + "\nimport json, sys\nsys.stdout.write(%r + json.dumps(look()))" % ("\n" + ANSWER)
            setting = ["CUDA_VISIBLE_DEVICES="] if hidden else []
            argv = ["env", "TF_CPP_MIN_LOG_LEVEL=1"] + setting + [self.root + PYTHON, "-c", program]
            said = self.execute(tuple(argv))[1]
            found = re.findall(r"^%s(\{.*\})$" % ANSWER, said, re.M)
            if not found and not os.path.exists(base_python(self)):
                raise Fail(python_problem(self))  # a copy of the interpreter is here, its library is not
            self.looks[hidden] = (json.loads(found[-1]) if found else None, said)
        return self.looks[hidden]

    def pci(self):
        """Addresses of NVIDIA's GPUs on the PCI bus."""
        return [
            os.path.basename(path)
            for path in self.glob("/sys/bus/pci/devices/*")
            if self.text(path + "/vendor") == "0x10de"
            and (self.text(path + "/class") or "").startswith(("0x0300", "0x0302"))
        ]

    def declared(self):
        """What the inventory says, as a number, or None."""
        value = str(self.expected.get("gpu_count", ""))
        return int(value) if value.isdigit() else None

    def without_gpu(self):
        return self.declared() == 0 or (self.declared() is None and not self.pci() and not self.listed_quietly())

    def listed_quietly(self):
        status, output = self.run("nvidia-smi", "-L")
        return re.findall(r"^GPU \d+:", output, re.M) if status == 0 else []

    def wants_gpu(self):
        if self.without_gpu():
            raise Skip(
                "this host is to have no GPU"
                if self.declared() == 0
                else "no GPU is on the PCI bus, and gpu_count promises none"
            )

    def query(self, *fields):
        """Rows of nvidia-smi --query-gpu; turns its failures into sentences."""
        status, output = self.run("nvidia-smi", "--query-gpu=" + ",".join(fields), "--format=csv,noheader")
        if status != 0:
            raise Fail(smi_problem(self, status, output))
        rows = [[cell.strip() for cell in line.split(",")] for line in output.splitlines() if line.strip()]
        odd = [row for row in rows if len(row) != len(fields)]
        if odd:
            raise Fail(
                "nvidia-smi has to answer with %s for each GPU, and says: %s. Look at nvidia-smi by hand; this driver may not know the question."
                % (", ".join(fields), ", ".join(odd[0]))
            )
        return rows

    def loaded(self):
        match = re.search(r"NVRM version: .*?\s(\d+\.\d+(?:\.\d+)?)\s", self.text("/proc/driver/nvidia/version") or "")
        return match.group(1) if match else None

    def library(self):
        """Version of the driver's library: the installed one; in a container the one that processes get."""
        if self.contained():
            path = self.reached("libcuda.so.1") or self.unreached("libcuda.so.1")
            if path is None:
                return None
            names = [os.path.realpath(self.root + path)] + self.glob(os.path.dirname(path) + "/libcuda.so.*.*")
            found = [re.search(r"/libcuda\.so\.(\d+\.[\d.]+)$", name) for name in names]
            return ([match.group(1) for match in found if match] or [None])[0]
        for pattern in ("/usr/lib64", "/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib/x86_64-linux-gnu"):
            for path in self.glob(pattern + "/libcuda.so.*.*"):
                return os.path.basename(path)[len("libcuda.so.") :]
        return None

    def package(self):
        """Version of the packages that bring nvidia-smi, or None where they come from a .run file."""
        if self.exists("/etc/redhat-release"):
            status, output = self.run("rpm", "-qf", "--qf", "%{VERSION}", "/usr/bin/nvidia-smi")
            return output.strip() if status == 0 and re.match(r"^[\d.]+$", output.strip()) else None
        status, output = self.run(
            "dpkg-query", "-W", "-f", "${Version} ${db:Status-Status}\n", "nvidia-smi", "nvidia-utils-*"
        )
        match = re.search(r"^([\d.]+)-\S+ installed$", output or "", re.M)
        return match.group(1) if match else None

    def default_kernel(self):
        status, output = self.run("grubby", "--default-kernel")
        if status == 0 and "vmlinuz-" in output:
            return output.strip().split("vmlinuz-")[1]
        installed = [path[len("/boot/vmlinuz-") :] for path in self.glob("/boot/vmlinuz-*") if "rescue" not in path]
        return max(installed, key=version) if installed else None


def execute(argv):
    environment = dict(os.environ, LC_ALL="C")
    environment["PATH"] = environment.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:" + NVIDIA + "/bin"
    try:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
    except (IOError, OSError):
        return None, ""
    timer = threading.Timer(SLOW if argv[0] == "env" else TIMEOUT, process.kill)
    timer.start()
    try:
        output = process.communicate()[0].decode("utf-8", "replace")
    finally:
        timer.cancel()
    return process.returncode, output


def base_python(host):
    """The Python that the environment was made with: the link's end, or what virtualenv wrote beside its copy."""
    for path in host.glob(os.path.dirname(os.path.dirname(PYTHON)) + "/lib/python*/orig-prefix.txt"):
        return "%s%s/bin/%s" % (host.root, host.text(path), os.path.basename(os.path.dirname(path)))
    return os.path.realpath(host.root + PYTHON)


def python_problem(host):
    """Why the environment's Python cannot work here: the one that it was made with is of another system."""
    wanted = base_python(host)
    number = re.search(r"python(\d[\d.]*)$", wanted)
    here = [path for prefix in ("/usr/bin", "/usr/local/bin") for path in host.glob(prefix + "/python[23]*")]
    here = [path for path in here if re.search(r"/python\d\.\d+$", path)]
    return (
        "TensorFlow's environment was made with Python%s and needs it, with its library, at %s; it is not here, found %s: this is another system "
        "than the host's. Use an image that has this Python there, or a stack whose Python this %s has (%s)."
        % (
            " " + number.group(1) if number else "",
            wanted[len(host.root) :] if wanted.startswith(host.root) else wanted,
            ", ".join(here) or "no other Python either",
            host.place(),
            "engine images: Project Settings > Engine" if host.engine() else "deeplearning_request",
        )
    )


def no_gpus(host):
    """No GPU was handed into this container."""
    return "This %s was started without GPUs: no /dev/nvidia0 is here. %s" % (
        host.place(),
        "Start a session with one or more; where none can be chosen, an administrator has to allow them (NVIDIA_GPU_ENABLE in cdsw.conf, Admin > Engines)."
        if host.engine()
        else "Devices have to be handed in: docker --gpus, YARN's GPU plugin, a Kubernetes limit for nvidia.com/gpu.",
    )


def no_library(host, soname):
    """A library of the driver is not found in a container."""
    lies = host.unreached(soname)
    if lies:
        return (
            "The loader has to find %s, and does not look where it lies, in %s. Set LD_LIBRARY_PATH=%s/lib:%s/lib64%s."
            % (
                soname,
                os.path.dirname(lies),
                NVIDIA,
                NVIDIA,
                " (Admin > Engines, or the project's settings) and start a new session" if host.engine() else "",
            )
        )
    return "The driver's %s has to be in this %s, and neither LD_LIBRARY_PATH, the linker cache nor %s has it. %s" % (
        soname,
        host.place(),
        NVIDIA,
        "Start a session with GPUs; if it has some, NVIDIA_LIBRARY_PATH in /etc/cdsw/config/cdsw.conf names no directory with lib64 (or the same setting in Cloudera Manager)."
        if host.engine()
        else "Let the engine hand it in (docker --gpus), or mount the host's driver there.",
    )


def two_versions(host):
    """The library in a container is of another version than the module of its host; None where they are one."""
    library, loaded = host.library(), host.loaded()
    if library and loaded and library == loaded:
        return None
    path = host.reached("libcuda.so.1") or host.unreached("libcuda.so.1")
    if loaded and version(library) > version(loaded):
        cause = (
            "The host still runs the older module: it has to be rebooted, or the other version's files to be handed in."
        )
    elif host.engine():
        cause = (
            "The driver was changed on the host, and NVIDIA_LIBRARY_PATH in /etc/cdsw/config/cdsw.conf (or in Cloudera Manager) still names the older "
            "version's directory: correct it on every CDSW host, restart CDSW, and start a new session."
        )
    else:
        cause = "The driver was changed on the host after this container got its files: start a new one, or correct what mounts them."
    return (
        "The driver's library and the host's module have to be one version; this %s has library %s%s, its host module %s. %s"
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
    if status is None and host.contained():
        return "nvidia-smi has to be there for the GPUs to be asked, and neither PATH nor %s/bin has it. %s" % (
            NVIDIA,
            no_library(host, "libnvidia-ml.so.1")
            if not host.reached("libnvidia-ml.so.1")
            else "What brings the driver here has to bring its bin as well.",
        )
    if host.contained() and "version mismatch" in output:
        return (
            two_versions(host)
            or "nvidia-smi finds a libnvidia-ml.so.1 of another version than the module %s (%s), in %s: that one has to go."
            % (
                host.loaded(),
                first,
                os.path.dirname(host.reached("libnvidia-ml.so.1") or "its own directories"),
            )
        )
    if host.contained() and "No devices" in output and not host.granted():
        return no_gpus(host)
    if host.contained() and "couldn't find libnvidia-ml" in output:
        return no_library(host, "libnvidia-ml.so.1")
    if host.contained() and "couldn't communicate" in output:
        return "The NVIDIA driver has to run on the host of this %s and its devices to be here (nvidia-smi: %s). %s" % (
            host.place(),
            first,
            "Ask on the host: /opt/deeplearning/bin/gpu-check driver_runs" if host.granted() else no_gpus(host),
        )
    if status is None:
        return "nvidia-smi has to be there for the GPUs to be asked, and no such command was found. Run playbooks/gpu.yml for this host."
    if status < 0:
        return (
            "nvidia-smi has to answer within %d seconds, and hung: a GPU is sick. Look at dmesg for Xid, and reboot the host."
            % TIMEOUT
        )
    if "couldn't communicate" in output:
        return (
            "The NVIDIA driver has to run in the kernel, and does not (nvidia-smi: %s). Kernel %s %s. "
            "Load it with modprobe nvidia, read dmesg, or reboot into the kernel that has the module."
            % (first, running_kernel(host), module_words(host, running_kernel(host)))
        )
    if "version mismatch" in output:
        return (
            "The library and the loaded module have to be one version; the library is %s, the module %s (nvidia-smi: %s). "
            "The driver was changed and the old module still runs: reboot the host, or unload it with modprobe -r."
            % (host.library(), host.loaded(), first)
        )
    if "Insufficient Permissions" in output:
        return (
            "nvidia-smi needs to open /dev/nvidia*, and may not: %s. Look at their rights, and at the container's device rules."
            % first
        )
    if "No devices" in output and host.yarn():
        return (
            "This YARN container was given no GPU: nvidia-smi lists none of its host's. Ask for them when the job is submitted "
            "(spark.executor.resource.gpu.amount, yarn.io/gpu), and let YARN know them: yarn.nodemanager.resource-plugins."
        )
    if "No devices" in output:
        return (
            "nvidia-smi has to list GPUs, and says: %s. Look for cards that are off the bus: lspci -d 10de:; dmesg | grep -i nvrm"
            % first
        )
    return "nvidia-smi has to answer, and ended with status %s: %s. Look at dmesg | grep -i -e nvrm -e xid" % (
        status,
        first,
    )


def causes(host, look, said):
    """Why TensorFlow does not see GPUs that are there: the usual causes in the order in which they hide each other."""
    found = []
    status, output = host.run("nvidia-smi", "-L")
    if status != 0:
        found.append(smi_problem(host, status, output))
    if look and not look["cuda_build"]:
        found.append(
            "This is TensorFlow's CPU build: ask for a stack without -cpu- in its name (deeplearning_request)."
        )
    if host.contained() and status == 0:
        if not host.reached("libcuda.so.1"):
            found.append(no_library(host, "libcuda.so.1"))
        elif host.loaded() and two_versions(host):
            found.append(two_versions(host))
    missing = sorted(set(re.findall(r"Could not load dynamic library '([^']+)'", said)))
    if host.contained():
        missing = [name for name in missing if not name.startswith("libcuda.so")]  # the driver's, told above
    if missing:
        words = "It does not find %s: " + brought(
            host,
            "install what holds them (cuda_versions, cudnn_versions; libcuda.so.1 is the driver's) and run ldconfig.",
        )
        found.append(words % ", ".join(missing))
    elif "Cannot dlopen some GPU libraries" in said:
        found.append(
            "It does not find some GPU libraries and does not name them: "
            + brought(host, "compare its CUDA with ldconfig -p | grep -e cudart -e cudnn -e cublas.")
        )
    if "driver version is insufficient" in said:
        found.append(
            "The driver %s is older than its CUDA needs: playbooks/upgrade_driver.yml."
            % (host.library() or "of this host")
        )
    for loaded, built in sorted(
        set(re.findall(r"Loaded runtime CuDNN library: (\S+) but source was compiled with: (\S+?)\.?\s", said))
    ):
        found.append("cuDNN %s is loaded, and it was compiled with %s: correct cudnn_versions." % (loaded, built))
    nodes = [path for path in host.glob("/dev/nvidia*") if stat.S_ISCHR(os.stat(host.root + path).st_mode)]
    closed = [path for path in nodes if not os.access(host.root + path, os.R_OK | os.W_OK)]
    if closed:
        found.append(
            "This user may not open %s: look at their rights (NVreg_DeviceFileMode), and at the container's device rules."
            % ", ".join(closed)
        )
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
        if os.environ.get(name) in ("", "-1", "none", "void"):
            found.append("%s=%s hides the GPUs from this process." % (name, os.environ[name]))
    if host.contained() and not nodes:
        found.append(no_gpus(host))
    elif host.loaded() and not nodes:
        found.append(
            "The driver runs and /dev/nvidia* are not here: in a container its devices have to be handed in (YARN's GPU plugin, CDSW's GPU setting, docker --gpus); outside, nvidia-modprobe -c 0 -u."
        )
    if look is None:
        found.append(
            "TensorFlow did not come so far: %s" % (said.strip().splitlines() or ["it said nothing"])[-1][:300]
        )
    return " ".join(
        found
        or ["None of the usual causes shows: import TensorFlow with TF_CPP_MIN_LOG_LEVEL=0 and read what it says."]
    )


def brought(host, otherwise):
    """How a library of CUDA comes to where it is missing."""
    if not host.contained():
        return otherwise
    return "build what holds it into the image, or mount the host's /usr/local/cuda-X.Y and name its lib64 in LD_LIBRARY_PATH."


def running_kernel(host):
    return (host.run("uname", "-r")[1] or "").strip()


def module_of(host, kernel):
    """Version and the kernel it was built for, of the module that this kernel would load; None where there is none."""
    places = ("extra", "extra/*", "extra/drivers/video/nvidia", "updates", "updates/*", "kernel/drivers/video")
    for pattern in places + ("weak-updates/*",):  # noqa: RUF005 (Python 2.7)
        for path in host.glob("/lib/modules/%s/%s/nvidia*.ko*" % (kernel, pattern)):
            if not re.match(r"nvidia(-current(-open)?)?\.ko(\.\w+)?$", os.path.basename(path)):
                continue
            output = host.run("modinfo", host.root + path)[1]
            found = re.search(r"^version:\s*(\S+)", output, re.M)
            magic = re.search(r"^vermagic:\s*(\S+)", output, re.M)
            return found.group(1) if found else None, magic.group(1) if magic else None
    return None


def module_words(host, kernel):
    found = module_of(host, kernel)
    return "has the module %s" % found[0] if found else "has no module of NVIDIA's"


@host_check
def gpus_on_pci_as_declared(host):
    """GPUs on the PCI bus = declared"""
    found = len(host.pci())
    if host.declared() is None:
        raise Skip("gpu_count is not set in the inventory")
    if found == 0 and host.listed_quietly():
        raise Skip("a container without a PCI bus of its own")
    if found != host.declared():
        raise Fail(
            "The inventory promises %d GPUs, and the PCI bus shows %d. Look with lspci -d 10de:, or correct gpu_count."
            % (host.declared(), found)
        )
    return "%d GPUs" % found


@check
def gpus_by_driver_as_declared(host):
    """GPUs by nvidia-smi = by PCI = declared"""
    host.wants_gpu()
    status, output = host.run("nvidia-smi", "-L")
    if status != 0:
        raise Fail(smi_problem(host, status, output))
    listed = len(re.findall(r"^GPU \d+:", output, re.M))
    promises = ((host.declared(), "the inventory promises"), (len(host.pci()) or None, "the PCI bus shows"))
    if host.contained():  # it may have been given some of its host's
        promises = ((count(host), "this %s was given" % host.place()),)
    elif host.yarn() and 0 < listed <= (host.declared() or len(host.pci()) or listed):
        return "%d GPUs of its host's %d" % (listed, host.declared() or len(host.pci()) or listed)
    for wanted, whose in promises:
        if wanted is not None and listed != wanted:
            raise Fail(
                "nvidia-smi has to list the %d GPUs that %s, and lists %d. Look at dmesg | grep -i -e nvrm -e xid for the missing one."
                % (wanted, whose, listed)
            )
    return "%d GPUs" % listed


@check
def driver_runs(host):
    """The driver answers"""
    host.wants_gpu()
    host.query("driver_version")
    return "it answers"


@check
def versions_agree(host):
    """Module version = library version = package version"""
    if host.contained():
        return versions_in_a_container(host)
    if not host.exists("/usr/bin/nvidia-smi"):
        raise Skip("no driver is installed")
    found = {"library": host.library(), "installed module": (module_of(host, host.default_kernel()) or (None,))[0]}
    if host.package():
        found["package"] = host.package()
    if host.loaded():
        found["loaded module"] = host.loaded()
    if host.expected.get("driver"):
        found["wanted"] = host.expected["driver"]
    if len(set(found.values())) != 1:
        listed = ", ".join("%s %s" % (name, value or "none") for name, value in sorted(found.items()))
        raise Fail(
            "Module, library and package of the driver have to be one version, and are: %s. After a change of driver: reboot; else run playbooks/gpu.yml."
            % listed
        )
    return "%s" % found["library"]


def versions_in_a_container(host):
    """The library came from outside, the module is the host's, and packages are nobody's business here."""
    host.wants_gpu()
    path = host.reached("libcuda.so.1") or host.unreached("libcuda.so.1")
    if not path:
        raise Fail(no_library(host, "libcuda.so.1"))
    if not host.library():
        raise Skip("the name of %s tells no version; nvml_reachable asks whether it fits" % path)
    if not host.loaded():
        raise Fail(
            "The driver has to run on the host of this %s, and /proc/driver/nvidia/version is not there. Ask on the host: /opt/deeplearning/bin/gpu-check"
            % host.place()
        )
    if two_versions(host):
        raise Fail(two_versions(host))
    return host.library()


@host_check
def module_for_boot_kernel(host):
    """The kernel of the next boot has a module that was built for it"""
    if not host.exists("/usr/bin/nvidia-smi"):
        raise Skip("no driver is installed")
    kernel = host.default_kernel()
    if kernel is None:
        raise Skip("no kernel is installed here, as in a container")
    found = module_of(host, kernel)
    if found is None:
        raise Fail(
            "Kernel %s starts at the next boot and needs a module of NVIDIA's; it has none. Run playbooks/gpu.yml before a reboot (dkms autoinstall -k %s)."
            % (kernel, kernel)
        )
    if found[1] != kernel:
        raise Fail(
            "Kernel %s needs a module that was built for it; the one in its tree was built for %s. Rebuild: dkms install --force -k %s."
            % (kernel, found[1], kernel)
        )
    return "%s for %s" % (found[0], kernel)


@host_check
def nouveau_absent(host):
    """nouveau is not loaded"""
    if re.search(r"^nouveau\s", host.text("/proc/modules") or "", re.M):
        raise Fail(
            "NVIDIA's driver needs nouveau away, and it is loaded. Run playbooks/gpu.yml (it comes back from the initramfs), and reboot."
        )
    return "not loaded"


@check
def device_nodes(host):
    """Device nodes are there, and users may open them"""
    host.wants_gpu()
    if host.contained():
        return devices_in_a_container(host)
    if not host.loaded():
        raise Fail("/dev/nvidia* need the driver loaded, and it is not. modprobe nvidia && nvidia-modprobe -c 0 -u")
    nodes = host.granted()
    wanted = ["/dev/nvidiactl", "/dev/nvidia-uvm"]
    missing = [path for path in wanted if not host.exists(path)]
    if missing or len(nodes) < len(host.pci()):
        raise Fail(
            "%d GPUs need as many /dev/nvidiaN, /dev/nvidiactl and /dev/nvidia-uvm; found %s. Make them: nvidia-modprobe -c 0 -u"
            % (len(host.pci()), ", ".join(nodes) or "none")
        )
    closed = [path for path in nodes + wanted if os.stat(host.root + path).st_mode & stat.S_IRWXO & 0o6 != 0o6]
    if closed:
        raise Fail(
            "Jobs run as their users and need to read and write %s; others may not. Look at NVreg_DeviceFileMode in /etc/modprobe.d."
            % ", ".join(closed)
        )
    return "%d GPUs" % len(nodes)


def devices_in_a_container(host):
    """Those that were handed in, and this user's right to open them."""
    nodes = host.granted()
    if not nodes:
        raise Fail(no_gpus(host))
    wanted = nodes + ["/dev/nvidiactl", "/dev/nvidia-uvm"]
    missing = [path for path in wanted if not host.exists(path)]
    if missing:
        raise Fail(
            "%d GPUs need %s as well, and this %s was not given it. On the host: nvidia-modprobe -c 0 -u; then start a new one."
            % (len(nodes), " and ".join(missing), host.place())
        )
    closed = [path for path in wanted if not os.access(host.root + path, os.R_OK | os.W_OK)]
    if closed:
        raise Fail(
            "This user (uid %d) needs to read and write %s, and may not. On the host look at NVreg_DeviceFileMode in /etc/modprobe.d; here at the container's device rules."
            % (os.getuid(), ", ".join(closed))
        )
    return "%d GPUs, open for uid %d" % (len(nodes), os.getuid())


@host_check
def persistence(host):
    """Persistence is on"""
    host.wants_gpu()
    if host.expected.get("persistence") is False:
        raise Skip("nvidia_driver_persistence_enabled is false")
    off = [row[0] for row in host.query("index", "persistence_mode") if row[1] != "Enabled"]
    if off:
        raise Fail(
            "Without persistence every job waits for the driver to start; it is off for GPU %s. systemctl enable --now nvidia-persistenced"
            % ", ".join(off)
        )
    return "on"


@check
def driver_new_enough(host):
    """Driver >= what the stack needs"""
    minimum = host.expected.get("driver_min")
    if not minimum:
        raise Skip("the stack of this host names no oldest driver")
    if not host.library() and host.contained():
        return versions_in_a_container(host)
    if not host.library():
        raise Fail(
            "The stack of this host needs driver %s or newer, and none is installed. Run playbooks/gpu.yml." % minimum
        )
    if version(host.library()) < version(minimum):
        raise Fail(
            "The stack of this host needs driver %s or newer, and %s is installed. Upgrade with playbooks/upgrade_driver.yml, or choose an older stack."
            % (minimum, host.library())
        )
    return "%s >= %s" % (host.library(), minimum)


@host_check
def cdsw_hands_in_this_driver(host):
    """CDSW's setting names the driver that is installed"""
    text = host.text(CDSW_CONF)
    if text is None:
        raise Skip("no host of CDSW (%s)" % CDSW_CONF)
    settings = dict(re.findall(r"""^\s*(?:export\s+)?(NVIDIA_\w+)=["']?([^"'#\n]*?)["']?\s*(?:#.*)?$""", text, re.M))
    if settings.get("NVIDIA_GPU_ENABLE", "").lower() != "true":
        raise Skip("NVIDIA_GPU_ENABLE is not true in %s: engines get no GPU" % CDSW_CONF)
    place, library = settings.get("NVIDIA_LIBRARY_PATH", ""), host.library()
    if not place:
        raise Skip("NVIDIA_LIBRARY_PATH is not set in %s: CDSW finds the driver in another way" % CDSW_CONF)
    handed = [path for name in ("/lib64", "", "/lib") for path in host.glob(place + name + "/libcuda.so.*.*")]
    found = os.path.basename(handed[0])[len("libcuda.so.") :] if handed else None
    if library and found == library:
        return "%s in %s" % (found, place)
    raise Fail(
        "NVIDIA_LIBRARY_PATH in %s has to name a directory with driver %s, the one that is installed; %s has %s. Correct it on every CDSW host after a "
        "change of driver, and restart CDSW; running engines keep what they have."
        % (CDSW_CONF, library or "none", place, "driver %s" % found if found else "no libcuda.so")
    )


@host_check
def nvcc_version(host):
    """nvcc is the version of its directory"""
    homes = [path for path in host.glob("/usr/local/cuda-*") if re.match(r"/usr/local/cuda-\d+\.\d+$", path)]
    wanted = ["/usr/local/cuda-" + one for one in host.expected.get("cuda", [])]
    missing = [home for home in wanted if home not in homes]
    if missing:
        raise Fail("%s has to be there, and is not. Run playbooks/gpu.yml." % ", ".join(missing))
    if not homes:
        raise Skip("no CUDA is installed; TensorFlow's own packages may carry it")
    for home in homes:
        output = host.run(host.root + home + "/bin/nvcc", "--version")[1]
        match = re.search(r"release (\d+\.\d+)", output)
        if not match or "/usr/local/cuda-" + match.group(1) != home:
            raise Fail(
                "%s/bin/nvcc has to say release %s, and says %s. Install the toolkit again: playbooks/gpu.yml"
                % (home, home.split("-")[1], match.group(1) if match else "nothing")
            )
    return ", ".join(home.split("-")[1] for home in homes)


@host_check
def cuda_link(host):
    """/usr/local/cuda leads to an installed toolkit"""
    link = host.root + "/usr/local/cuda"
    if not os.path.islink(link):
        raise Skip("there is no /usr/local/cuda")
    wanted = host.expected.get("cuda_default")
    target = os.path.basename(os.path.realpath(link))
    if not os.path.isdir(link) or (wanted and target != "cuda-" + wanted):
        raise Fail(
            "/usr/local/cuda has to lead to cuda-%s, and leads to %s. Run playbooks/gpu.yml."
            % (wanted or "X.Y", os.readlink(link))
        )
    return target


def cached(host, soname):
    """The path that the linker cache gives for a library."""
    match = re.search(r"^\s*%s \(.*\) => (\S+)" % re.escape(soname), host.run("ldconfig", "-p")[1], re.M)
    return match.group(1) if match else None


@check
def linker_finds_the_driver(host):
    """The loader finds libcuda and libnvidia-ml, and they exist"""
    if host.contained():
        host.wants_gpu()
        for soname in ("libcuda.so.1", "libnvidia-ml.so.1"):
            if not host.reached(soname):
                raise Fail(no_library(host, soname))
        return ", ".join(host.reached(soname) for soname in ("libcuda.so.1", "libnvidia-ml.so.1"))
    if not host.exists("/usr/bin/nvidia-smi"):
        raise Skip("no driver is installed")
    for soname in ("libcuda.so.1", "libnvidia-ml.so.1"):
        path = cached(host, soname)
        if path is None or not host.exists(path):
            raise Fail(
                "The linker has to find %s, and %s. Run ldconfig; if that does not help, playbooks/gpu.yml."
                % (soname, "its cache leads to %s, which is gone" % path if path else "its cache has none")
            )
    return "libcuda, libnvidia-ml"


@check
def linker_finds_cuda(host):
    """The loader finds every wanted toolkit's runtime"""
    wanted = host.expected.get("cuda", [])
    if not wanted:
        raise Skip("no CUDA toolkit is wanted here")
    for one in wanted:
        # From CUDA 11 on the runtime's soname has the major number, and .0.
        soname = "libcudart.so." + (
            one if version(one) < [11] else one.split(".")[0] + ".0" if version(one) < [12] else one.split(".")[0]
        )
        path = host.reached(soname) or host.reached("libcudart.so." + one)
        if path is None or not host.exists(path):
            remedy = "look at /etc/ld.so.conf.d/deeplearning-cuda-%s.conf and run ldconfig." % one
            raise Fail(
                "The linker has to find %s of CUDA %s, and its cache has none: %s"
                % (soname, one, brought(host, remedy))
            )
    return ", ".join(wanted)


@check
def cudnn_version(host):
    """cuDNN: header version = library version = wanted"""
    wanted = host.expected.get("cudnn", {})
    if not wanted:
        raise Skip("no cuDNN is wanted here")
    for number, home in sorted(wanted.items()):
        header = None
        for name in ("cudnn_version.h", "cudnn.h"):
            for directory in (
                home + "/include",
                home + "/targets/x86_64-linux/include",
                "/usr/include",
                "/usr/include/x86_64-linux-gnu",
            ):
                fields = dict(
                    re.findall(
                        r"^#define CUDNN_(MAJOR|MINOR|PATCHLEVEL)\s+(\d+)",
                        host.text(directory + "/" + name) or "",
                        re.M,
                    )
                )
                if header is None and len(fields) == 3 and fields["MAJOR"] == number.split(".")[0]:
                    header = "%(MAJOR)s.%(MINOR)s.%(PATCHLEVEL)s" % fields
        soname = "libcudnn.so." + number.split(".")[0]
        path = host.reached(soname)
        if path is None:
            raise Fail(
                "TensorFlow loads %s, and the linker cache has none: %s"
                % (soname, brought(host, "run playbooks/gpu.yml, or ldconfig."))
            )
        try:
            code = host.load(host.root + path).cudnnGetVersion()
        except (OSError, AttributeError) as error:
            raise Fail("%s has to load, and does not: %s. Install cuDNN again." % (path, error))
        short = ".".join(number.split(".")[:3])
        major, minor, patch = version(short)
        codes = (major * 1000 + minor * 100 + patch, major * 10000 + minor * 100 + patch)  # the second form from 9.0 on
        if code not in codes or (header is not None and header != short):
            raise Fail(
                "cuDNN %s is wanted; %s answers %s, the header says %s. Remove the other version, and run playbooks/gpu.yml."
                % (short, path, code, header or "nothing")
            )
    return ", ".join(sorted(wanted))


@check
def nccl_loads(host):
    """NCCL loads"""
    wanted = host.expected.get("nccl", {})
    if not wanted:
        raise Skip("no NCCL is wanted here")
    path = host.reached("libnccl.so.2")
    found = os.path.realpath(host.root + path).split("libnccl.so.")[-1] if path else "none"
    if found not in wanted:
        raise Fail(
            "NCCL %s is wanted, and the linker finds %s: %s"
            % (" or ".join(sorted(wanted)), found, brought(host, "run playbooks/gpu.yml, or ldconfig."))
        )
    return found


@check
def nvml_reachable(host):
    """NVML answers from Python"""
    host.wants_gpu()
    try:
        status = host.load("libnvidia-ml.so.1").nvmlInit_v2()
    except (OSError, AttributeError) as error:
        if host.contained() and not host.reached("libnvidia-ml.so.1"):
            raise Fail(no_library(host, "libnvidia-ml.so.1"))
        raise Fail("libnvidia-ml.so.1 has to load, and does not: %s. Run ldconfig, or playbooks/gpu.yml." % error)
    known = {
        9: "the driver is not loaded: modprobe nvidia",
        4: "no permission for /dev/nvidia*",
        18: "module and library differ: reboot",
    }
    if status == 18 and host.contained() and two_versions(host):
        raise Fail(two_versions(host))
    if status != 0:
        raise Fail("nvmlInit has to return 0, and returned %d (%s)." % (status, known.get(status, "see nvmlReturn_t")))
    return "it answers"


def unhealthy(host, field, bad, words):
    rows = host.query("index", field)
    sick = ["GPU %s: %s" % (row[0], row[1]) for row in rows if bad(row[1])]
    if sick:
        raise Fail("%s; found %s." % (words, "; ".join(sick)))
    return "; ".join("GPU %s: %s" % tuple(row) for row in rows)


def count(host):
    """How many GPUs there have to be here: on a host those that were promised, in a container those that were handed in."""
    if host.contained():
        return len(host.granted()) or len(host.listed_quietly()) or host.declared() or len(host.pci())
    if host.yarn() and host.listed_quietly():
        return len(host.listed_quietly())
    return host.declared() or len(host.pci()) or len(host.listed_quietly())


def computed(look, place):
    """The first way in which the product is wrong or in the wrong place, or None."""
    for name, product in sorted(look["products"].items()):
        if product["error"]:
            return "in the form of %s it ends with: %s" % (name, product["error"])
        if product["value"] != [[22.0, 28.0], [49.0, 64.0]]:
            return "in the form of %s it is %s" % (name, product["value"])
        if not product["places"] or not all(one.lower().endswith(place) for one in product["places"]):
            return "in the form of %s it was computed on %s" % (
                name,
                ", ".join(product["places"]) or "an unknown device",
            )
    return None


@check
def tensorflow_lists_gpus(host):
    """TensorFlow lists every GPU"""
    host.wants_gpu()
    look, said = host.tensorflow()
    seen = len(look["gpus"]) if look else 0
    if seen != count(host):
        raise Fail("TensorFlow has to list %d GPUs, and lists %d. %s" % (count(host), seen, causes(host, look, said)))
    return "%d GPUs" % seen


@check
def tensorflow_computes_on_gpu(host):
    """TensorFlow places a 2x3 by 3x2 matrix product on GPU:0, with the right result"""
    host.wants_gpu()
    look, said = host.tensorflow()
    if not look or not look["gpus"]:
        raise Fail("The product has to be computed on GPU:0, and TensorFlow sees no GPU. %s" % causes(host, look, said))
    wrong = computed(look, "gpu:0")
    if wrong:
        raise Fail("The product has to be [[22, 28], [49, 64]] on GPU:0; %s. %s" % (wrong, causes(host, look, said)))
    return ", ".join(sorted(look["products"]))


@check
def tensorflow_computes_on_cpu(host):
    """The same with CUDA_VISIBLE_DEVICES="" on the CPU"""
    host.wants_gpu()
    host.tensorflow()
    look, said = host.tensorflow(hidden=True)
    if not look or look["gpus"] or computed(look, "cpu:0"):
        said = (said.strip().splitlines() or ["nothing"])[-1][:300]
        raise Fail(
            "With CUDA_VISIBLE_DEVICES empty the product has to be [[22, 28], [49, 64]] on CPU:0; %s. Install the environment again: site.yml -e apply=all."
            % (
                "TensorFlow said: " + said
                if not look
                else "GPUs are seen all the same"
                if look["gpus"]
                else computed(look, "cpu:0")
            )
        )
    return ", ".join(sorted(look["products"]))


@check
def ecc_errors(host):
    """No uncorrected ECC errors since boot"""
    host.wants_gpu()
    return unhealthy(
        host,
        "ecc.errors.uncorrected.volatile.total",
        lambda value: value.isdigit() and int(value) > 0,
        "A GPU with uncorrected memory errors computes nonsense: drain the host, reset or replace the card",
    )


@check
def retired_pages(host):
    """No page waits to be retired, no row to be remapped"""
    host.wants_gpu()
    unhealthy(
        host,
        "remapped_rows.failure",
        lambda value: value in ("Yes", "1"),
        "A row could not be remapped: replace the card",
    )
    return unhealthy(
        host, "retired_pages.pending", lambda value: value == "Yes", "Pages wait to be retired: reboot the host"
    )


@host_check
def xid(host):
    """No Xid in the kernel's log"""
    host.wants_gpu()
    status, output = host.run("dmesg")
    if status != 0:
        raise Skip("the kernel's log is not readable here")
    found = re.findall(r"NVRM: Xid \((.*?)\): (\d+)", output)
    if found:
        raise Fail(
            "The kernel log has to be free of Xid, and has %s. Look them up in NVIDIA's Xid catalog; 48, 63, 64, 74, 79 mean the card or its slot."
            % ", ".join("%s at %s" % (number, bus) for bus, number in found[:5])
        )
    return "none"


@check
def pcie_width(host):
    """PCIe links are as wide as they can be"""
    host.wants_gpu()
    narrow = [
        row
        for row in host.query("index", "pcie.link.width.current", "pcie.link.width.max")
        if row[1].isdigit() and row[2].isdigit() and int(row[1]) < int(row[2])
    ]
    if narrow:
        raise Fail(
            "A link that is narrower than it can be starves the GPU: %s. Reseat the card, or look at the slot."
            % "; ".join("GPU %s has x%s of x%s" % tuple(row) for row in narrow)
        )
    return "full"


@host_check
def fabric_manager(host):
    """NVSwitch systems: the fabric manager runs, of the driver's version"""
    switches = [
        path
        for path in host.glob("/sys/bus/pci/devices/*")
        if host.text(path + "/vendor") == "0x10de" and (host.text(path + "/class") or "").startswith("0x0680")
    ]
    if not switches:
        raise Skip("no NVSwitch here")
    status, output = host.run("systemctl", "is-active", "nvidia-fabricmanager")
    if status != 0:
        raise Fail(
            "%d NVSwitches need the fabric manager, and it is %s: CUDA fails with status 802. systemctl status nvidia-fabricmanager; its version has to be %s."
            % (len(switches), output.strip() or "absent", host.library())
        )
    return "active"


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


def results(host, names):
    for name, function in CHECKS:
        if names and name not in names:
            continue
        try:
            outcome, message = "PASS", function(host)
        except Skip as reason:
            outcome, message = "SKIP", str(reason)
        except Fail as problem:
            outcome, message = "FAIL", str(problem)
        yield {"name": name, "question": function.__doc__, "outcome": outcome, "message": message}


def junit(found):
    from xml.sax.saxutils import escape, quoteattr

    lines = ['<?xml version="1.0" encoding="utf-8"?>', '<testsuite name="gpu-check" tests="%d">' % len(found)]
    for one in found:
        inner = {
            "FAIL": "<failure>%s</failure>",
            "SKIP": "<skipped>%s</skipped>",
            "PASS": "<system-out>%s</system-out>",
        }[one["outcome"]]
        lines.append(
            '<testcase classname="gpu-check" name=%s>%s</testcase>'
            % (quoteattr(one["name"]), inner % escape(one["message"]))
        )
    return "\n".join(lines + ["</testsuite>", ""])


def main(arguments):
    report = None
    if "--junit" in arguments:
        at = arguments.index("--junit")
        report = arguments[at + 1] if len(arguments) > at + 1 else None
        arguments = arguments[:at] + arguments[at + 2 :]
    names = [item for item in arguments if not item.startswith("-")]
    known = [name for name, _ in CHECKS]
    wrong = [item for item in arguments if item.startswith("-") and item not in ("--json", "--list")]
    wrong += [name for name in names if name not in known]
    if wrong:
        sys.stderr.write(
            "gpu-check does not know %s. Checks: %s. Options: --json, --junit FILE, --list.\n"
            % (", ".join(wrong), ", ".join(known))
        )
        return 2
    if "--list" in arguments:
        sys.stdout.write("".join("%-28s %s\n" % (name, function.__doc__) for name, function in CHECKS))
        return 0
    found = []
    for one in results(Host(), names):
        found.append(one)
        if "--json" not in arguments:
            sys.stdout.write("%(outcome)s  %(name)s: %(message)s\n" % one)
    if "--json" in arguments:
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
    if report:
        with open(report, "w") as handle:
            handle.write(junit(found))
    return 1 if any(one["outcome"] == "FAIL" for one in found) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
