"""The host, or the container, as the questions see it. Tests give it a root and answers for commands."""

import ctypes
import json
import os
import pwd
import re
import stat

from ansible.module_utils.hadoop_dl_host import host_system, processes

from gpu_check import cells
from gpu_check.questions import Fail, NotReported, Skip
from gpu_check.sentences import LOADER, NVIDIA, TIMEOUT, smi_problem

ETC = "/opt/deeplearning/etc"
PYTHON = "/opt/deeplearning/current/bin/python"
CORRUPTED = r"(?m)^WARNING: infoROM is corrupted at gpu (\S+)\s*"  # nvidia-smi(1): its status is 14, and it answers all the same
PATH = ":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:" + NVIDIA + "/bin"
# What of root's variables a program of others gets: where libraries are, and which GPUs it sees.
KEPT = re.compile(r"(CUDA|NVIDIA|TF|XLA)_|(PATH|LD_LIBRARY_PATH|LANG|TZ)$")


def become_nobody(groups):
    """What a child of root does before it runs a program of others. A cell would hide what CUDA needs: the daemon's socket, nvidia-modprobe."""
    entry = pwd.getpwnam("nobody")

    def leave():
        os.setgroups(groups)
        os.setgid(entry.pw_gid)
        os.setuid(entry.pw_uid)

    return leave


def execute(argv, seconds=TIMEOUT, groups=None):
    """Status and output of a program, with its errors if it failed; status None: it cannot be run, -9: it did not end in time.

    groups: run it as nobody with these.
    """
    environment = dict(os.environ, LC_ALL="C")
    environment["PATH"] = environment.get("PATH", "") + PATH
    prepare = None
    if groups is not None:
        environment = dict((name, value) for name, value in environment.items() if KEPT.match(name))
        environment.update(LC_ALL="C", HOME="/")
        prepare = become_nobody(groups)
    answer = processes.run(list(argv), seconds, environment, prepare=prepare)
    if answer.late:
        return -9, ""
    if answer.status == 127 and not answer.output and not answer.error:
        return None, ""
    errors = answer.error if answer.status != 0 else ""  # else warnings, as the loader's about LD_PRELOAD
    return answer.status, "\n".join(text for text in (answer.output, errors) if text) + "\n"


class Host(host_system.System):
    """Also what its drivers, its container and its inventory show. named: the questions that were asked for by name; python: the environment's; program: the text of product.py."""

    def __init__(self, root="", run=None, load=None, named=(), python=PYTHON, program=None):
        super(Host, self).__init__(root)
        self.execute = run or execute
        self.load = load or ctypes.CDLL
        self.named = named
        self.python = python
        self.program = program
        self.answers = {}
        self.corrupted = set()  # addresses of cards whose infoROM nvidia-smi calls corrupted
        self.looks = {}
        self.expected = {}
        for name in ("gpu-check", "gpu-check-cuda", "gpu-check-cudnn", "gpu-check-nccl"):
            try:
                self.expected.update(json.loads(self.text("%s/%s.json" % (ETC, name)) or "{}"))
            except ValueError:
                raise Fail("%s/%s.json must be JSON but is not. Run playbooks/gpu.yml." % (ETC, name))

    def execute_foreign(self, argv, seconds):
        """The same for a program whose code may be anybody's: if root asks, nobody runs it, with the groups that may open the GPUs."""
        if not self.gives_up_root():
            return self.execute(argv, seconds)
        groups = set(status.st_gid for _, status in self.nodes())
        return self.execute(argv, seconds, groups=sorted(groups - set([0])))

    def gives_up_root(self):
        """In a container root is its user's."""
        return os.geteuid() == 0 and not self.contained()

    def nodes(self):
        """NVIDIA's device nodes, each with its status."""
        entries = [(path, os.stat(self.root + path)) for path in self.glob("/dev/nvidia*")]
        return [(path, status) for path, status in entries if stat.S_ISCHR(status.st_mode)]

    def output(self, argv, accepted=(0,)):
        status, output = self.run(*argv)
        return output if status in accepted else None

    def run(self, *argv):
        """Status and output of a command, which runs once; status None if the command is missing."""
        if argv not in self.answers:
            status, output = self.execute(argv)
            addresses = re.findall(CORRUPTED, output) if argv[0] == "nvidia-smi" else []
            self.corrupted.update(addresses)
            self.answers[argv] = (0, re.sub(CORRUPTED, "", output)) if addresses and status == 14 else (status, output)
        return self.answers[argv]

    # What this place is.

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
        return not self.contained() and self.in_yarn()

    def in_yarn(self):
        """Whether YARN started this process; its NodeManager may itself be in a container."""
        return os.environ.get("CONTAINER_ID", "").startswith("container_")

    def place(self):
        """What a message calls this place."""
        if self.yarn():
            return "YARN container"
        if self.engine():
            return "engine"
        return "container" if self.contained() else "host"

    # What the PCI bus, the inventory and nvidia-smi show.

    def pci(self):
        """Addresses of NVIDIA's GPUs on the PCI bus."""
        return [gpu["address"] for gpu in self.nvidia_devices()[0]]

    def declared(self):
        """What the inventory requires, as a number, or None."""
        value = str(self.expected.get("gpu_count", ""))
        return int(value) if value.isdigit() else None

    def granted(self):
        """Device nodes of the GPUs that are here: in a container, those that it was given."""
        return self.glob("/dev/nvidia[0-9]*")

    def listed(self):
        """GPUs that nvidia-smi lists; none if it fails."""
        status, output = self.run("nvidia-smi", "-L")
        return re.findall(r"^GPU \d+:", output, re.M) if status == 0 else []

    def without_gpu(self):
        return self.declared() == 0 or (self.declared() is None and not self.pci() and not self.listed())

    def requires_gpu(self):
        if self.without_gpu():
            raise Skip(
                "this host must have no GPU"
                if self.declared() == 0
                else "no GPU is on the PCI bus, and gpu_count requires none"
            )

    def count(self):
        """How many GPUs must be here: on a host those that were promised, in a container those that were handed in."""
        if self.contained():
            return len(self.granted()) or len(self.listed()) or self.declared() or len(self.pci())
        if self.yarn() and self.listed():
            return len(self.listed())
        return self.declared() or len(self.pci()) or len(self.listed())

    def query(self, *fields, **options):
        """Rows of nvidia-smi --query-gpu (or of another switch), whose first field names the GPU; turns its failures into messages.

        Here each cell is judged for all questions (cells.py): it has a value of its field, or says that there is none.
        """
        switch = options.get("switch", "--query-gpu")
        status, output = self.run("nvidia-smi", "%s=%s" % (switch, ",".join(fields)), "--format=csv,noheader")
        if status == 2:  # nvidia-smi(1): a supplied argument or flag is invalid
            unknown = re.findall(r'Field "(\S+)" is not a valid field to query', output)
            if switch != "--query-gpu" or set(unknown) & set(fields):
                raise NotReported("this driver does not report %s" % ", ".join(unknown or fields))
        if status != 0:
            raise Fail(smi_problem(self, status, output))
        rows = [[cell.strip() for cell in line.split(",")] for line in output.splitlines() if line.strip()]
        if (
            not rows and switch == "--query-remapped-rows"
        ):  # its rows are those of the GPUs that can remap, from Ampere on
            raise NotReported("no GPU here remaps rows of memory (%s)" % ", ".join(fields[1:]))
        problems = [problem for problem in [cells.problem(fields, row) for row in rows] if problem]
        if problems or not rows:
            raise Fail("; ".join(problems) or "nvidia-smi must answer for each GPU but printed nothing. Run nvidia-smi")
        if switch == "--query-gpu" and self.listed() and len(set(row[0] for row in rows)) != len(self.listed()):
            raise Fail(
                "nvidia-smi must answer for each of the %d GPUs that it lists, but did for %s (%s). Run nvidia-smi"
                % (len(self.listed()), ", ".join(row[0] for row in rows), ", ".join(fields))
            )
        return rows

    def mig(self):
        """Numbers of the GPUs that MIG divides: a process sees one of their parts."""
        try:
            return [row[0] for row in self.query("index", "mig.mode.current") if row[1] == "Enabled"]
        except (Fail, Skip):
            return []

    def undivided(self):
        """Numbers of those of them that have no part: CUDA finds nothing there."""
        listed = re.findall(r"^GPU (\d+):.*\n((?:[ \t].*\n?)*)", self.run("nvidia-smi", "-L")[1], re.M)
        divided = [number for number, below in listed if re.search(r"^\s+MIG \S+\s+Device", below, re.M)]
        return [number for number in self.mig() if number not in divided]

    def virtual(self):
        """Names of the GPUs that are parts of a hypervisor's card (vGPU)."""
        names = re.findall(r"^GPU \d+: (.*) \(UUID", self.run("nvidia-smi", "-L")[1], re.M)
        return [name for name in names if host_system.VGPU.search(name)]

    def users(self):
        """Processes that compute on the GPUs, as nvidia-smi names them; in a container it may not see any."""
        status, output = self.run("nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader")
        rows = [line.strip() for line in output.splitlines() if re.match(r"\s*\d+\s*,", line)]
        return rows if status == 0 else []

    # The driver and its libraries.

    def loaded(self):
        return self.loaded_driver()[1]

    def has_driver(self):
        """Whether a driver is installed or runs, wherever its files are."""
        return bool(self.exists("/usr/bin/nvidia-smi") or self.loaded() or self.listed())

    def cached(self, soname):
        """The path that the linker cache gives for a library."""
        match = re.search(r"^\s*%s \(.*\) => (\S+)" % re.escape(soname), self.run("ldconfig", "-p")[1], re.M)
        return match.group(1) if match else None

    def reached(self, soname):
        """Where a process that starts here finds a library: LD_LIBRARY_PATH, the linker cache, in a container the loader's directories; or None."""
        for directory in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
            path = directory + "/" + soname
            if os.path.isabs(directory) and self.exists(path) and not self.for_32_bits(path):
                return path
        return self.cached(soname) or self.in_the_loaders_own(soname)

    def in_the_loaders_own(self, soname):
        """The same in a container whose linker cache is older than what was mounted there."""
        paths = [place + "/" + soname for place in LOADER] if self.contained() else []
        return ([path for path in paths if self.exists(path)] or [None])[0]

    def for_32_bits(self, path):
        """NVIDIA's lib holds what lib64 holds, for 32 bits; the loader passes over it."""
        with open(self.root + path, "rb") as handle:
            return handle.read(5) == b"\x7fELF\x01"

    def unreached(self, soname):
        """A library of the driver that was handed in and that no process finds under this name, or None."""
        path = NVIDIA + "/lib64/" + soname
        if self.exists(path):
            return path
        stem = soname[: -len(".1")]
        return (self.glob("%s/%s.[0-9]*.*" % (LOADER[1], stem)) or [None])[0] if self.contained() else None

    def library(self):
        """Version of the driver's library: the installed one; elsewhere the one that processes get."""
        if not self.contained() and self.driver_library():
            return self.driver_library()
        path = self.reached("libcuda.so.1") or self.unreached("libcuda.so.1")
        if path is None:
            return None
        names = [os.path.realpath(self.root + path)] + self.glob(os.path.dirname(path) + "/libcuda.so.*.*")
        matches = [re.search(r"/libcuda\.so\.(\d+\.[\d.]+)$", name) for name in names]
        return ([match.group(1) for match in matches if match] or [None])[0]

    def package(self):
        """Version of the package that contains nvidia-smi, or None if it comes from a .run file."""
        if self.exists("/etc/redhat-release"):
            status, output = self.run("rpm", "-qf", "--qf", "%{VERSION}\\n", "/usr/bin/nvidia-smi")
            versions = re.findall(r"^[\d.]+$", output or "", re.M) if status == 0 else []
            if len(versions) > 1:  # a transaction that was ended between the new package and the old one
                raise Fail(
                    "The package of nvidia-smi must be installed once but is in versions %s. Run dnf remove --duplicates "
                    "(RHEL 7: package-cleanup --cleandupes), then playbooks/gpu.yml." % " and ".join(versions)
                )
            return versions[0] if versions else None
        status, output = self.run(
            "dpkg-query", "-W", "-f", "${Version} ${db:Status-Status}\n", "nvidia-smi", "nvidia-utils-*"
        )
        match = re.search(r"^([\d.]+)-\S+ installed$", output or "", re.M)
        return match.group(1) if match else None

    def running_kernel(self):
        return (self.run("uname", "-r")[1] or "").strip()

    def module_of(self, kernel):
        """Version of the module that this kernel would load, and the kernel that it was built for; None without a module."""
        files = self.module_files("/lib/modules/" + kernel)
        if not files:
            return None
        output = self.run("modinfo", self.root + files[0])[1]
        version = re.search(r"^version:\s*(\S+)", output, re.M)
        magic = re.search(r"^vermagic:\s*(\S+)", output, re.M)
        return version.group(1) if version else None, magic.group(1) if magic else None
