"""Building TensorFlow: which wheel is built where and for which hosts, and on which hosts a built wheel does not fit."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hadoop_dl.data import bazel, tensorflow_build
from hadoop_dl.data.built import Record
from hadoop_dl.data.compat import load
from hadoop_dl.data.host_facts import HostFacts
from hadoop_dl.data.stacks import Stack
from hadoop_dl.data.versions import numbers
from hadoop_dl.plan.model import Host, Json
from hadoop_dl.plan.target import Target

GROUP = "build_hosts"
PLAYBOOK = "ansible-playbook -i INVENTORY playbooks/build_tensorflow.yml"


@dataclass(frozen=True)
class Build:
    """One wheel: the host that builds it, and what the hosts that will run it have in common."""

    builder: str
    stack: Stack
    python: str
    interpreter: str
    hosts: tuple[str, ...]
    cpu_features: tuple[str, ...]
    capabilities: tuple[str, ...]

    @property
    def part(self) -> Json:
        """The inputs that the playbook gives to the roles."""
        stack_data = self.stack.data
        return {
            "stack": self.stack.name,
            "python": self.python,
            "interpreter": self.interpreter,
            "version": stack_data["tensorflow"],
            "commit": stack_data["tensorflow_commit"],
            "bazel": stack_data["bazel"],
            "hdfs": bool(stack_data.get("hdfs")),
            "kafka": bool(stack_data.get("kafka")),
            "cuda": cuda_part(stack_data) if "cuda" in stack_data else {},
            "cpu_features": list(self.cpu_features),
            "capabilities": list(self.capabilities) if "cuda" in stack_data else [],
            "lock": self.stack.base_lock(self.python).digest,
            "record": f"{self.stack.lock_path(self.python).stem}.json",
            "hosts": list(self.hosts),
        }


def cuda_part(data: Json) -> Json:
    """CUDA where the role cuda installs it, with cuDNN in the same directory."""
    return {
        "version": data["cuda"],
        "cudnn": data["cudnn"],
        "path": f"/usr/local/cuda-{data['cuda']}",
        "cudnn_path": "",
    }


def requested(hosts: Sequence[Host], targets: Mapping[str, Target]) -> tuple[list[Build], list[str]]:
    """The wheels that the hosts of this run require, and the reasons why one cannot be built."""
    users: dict[tuple[str, str], list[Host]] = {}
    stacks: dict[str, Stack] = {}
    for host in hosts:
        stack, python = targets[host.name].stack, targets[host.name].python
        if stack and stack.is_built and python:
            users.setdefault((stack.name, python), []).append(host)
            stacks[stack.name] = stack
    if not users:
        return [], [
            "No host of this run asks for a stack whose TensorFlow is built. Choose one: grep -l 'tensorflow_source: built' stacks/*.yml"
        ]
    builds: list[Build] = []
    problems: list[str] = []
    for (name, python), wheel_hosts in sorted(users.items()):
        builder = builder_of(stacks[name], python, hosts)
        if builder is None:
            problems.append(
                f"{name} must be built on {stacks[name].data['os'][0]} with Python {python}, but no host of the group {GROUP} has both. "
                "Add such a host to the group, which may be one of the hosts that run it."
            )
        elif any(build.builder == builder.name for build in builds):
            problems.append(
                f"{builder.name} builds one wheel at a time, but {name} is the second. Run the playbook once for each stack, with --limit."
            )
        else:
            features, capabilities = common_features(wheel_hosts), all_capabilities(wheel_hosts)
            interpreter = builder.known.pythons[python]
            names = tuple(host.name for host in wheel_hosts)
            builds.append(Build(builder.name, stacks[name], python, interpreter, names, features, capabilities))
    return builds, problems


def builder_of(stack: Stack, python: str, hosts: Iterable[Host]) -> Host | None:
    for host in hosts:
        if GROUP in host.groups and host.known.os.short in stack.data["os"] and python in host.known.pythons:
            return host
    return None


def common_features(hosts: Iterable[Host]) -> tuple[str, ...]:
    """The CPU features that all of these hosts have."""
    feature_sets = [set(host.known.cpu.features or ()) for host in hosts]
    return tuple(sorted(set.intersection(*feature_sets))) if feature_sets else ()


def all_capabilities(hosts: Iterable[Host]) -> tuple[str, ...]:
    """The compute capabilities of all GPUs of these hosts."""
    host_capabilities = {cc for host in hosts for cc in capabilities(host.known)}
    return tuple(sorted(host_capabilities, key=numbers))


def capabilities(facts: HostFacts) -> list[str]:
    """The compute capabilities of a host's GPUs; those that no table knows are left out."""
    if not facts.nvidia.names:
        return []
    from hadoop_dl.resolver.gpus import Gpu, find_gpu

    gpus = [find_gpu(load(), name) for name in facts.nvidia.names]
    return sorted({gpu.cc for gpu in gpus if isinstance(gpu, Gpu)}, key=numbers)


def missing_sentence(stack: Stack) -> str:
    return f"{stack.name} requires the wheel of TensorFlow {stack.data['tensorflow']} that this site builds, but none is recorded. Build it first: {PLAYBOOK}"


def fit_problems(record: Record, facts: HostFacts) -> list[str]:
    """Why a built wheel does not run on a host: it is built for one operating system, for CPU features and for GPUs."""
    wheel = record.provenance
    name = f"The wheel of TensorFlow {wheel['version']}"
    problems = []
    if wheel["os"]["short"] != facts.os.short:
        problems.append(
            f"{name} was built on {wheel['os']['name']}, but the host runs {facts.os.name}. Request a stack for that system here; "
            "a wheel runs only on the system that it was built for."
        )
    for library, host_version in (("GLIBC", facts.glibc), ("GLIBCXX", facts.libstdcxx)):
        required_version = wheel["symbols"].get(library)
        if required_version and host_version and numbers(host_version) < numbers(required_version):
            problems.append(
                f"{name} requires {library}_{required_version}, but the host has {library}_{host_version}. Build it on a host whose system is as old as the oldest target: "
                f"{PLAYBOOK}"
            )
    missing = sorted(set(wheel["cpu_features"]) - set(facts.cpu.features or ()))
    if missing and facts.cpu.features is not None:
        problems.append(
            f"{name} was built for CPUs with {', '.join(missing)}, but the host's CPU lacks that. Build it for this host too: {PLAYBOOK}"
        )
    problems += [f"{name} {sentence} Build it for this host too: {PLAYBOOK}" for sentence in gpu_problems(wheel, facts)]
    if wheel["architecture"] != facts.architecture:
        problems.append(f"{name} is for {wheel['architecture']}, but the host is {facts.architecture}.")
    return problems


def gpu_problems(wheel: Json, facts: HostFacts) -> list[str]:
    """GPUs that are older than all that the wheel was compiled for; newer ones compile its PTX when they first use it."""
    compiled = wheel["cuda"].get("capabilities") if wheel["cuda"] else None
    if not compiled:
        return []
    old = [cc for cc in capabilities(facts) if all(numbers(cc) < numbers(wheel_cc) for wheel_cc in compiled)]
    return (
        [f"was built for the compute capabilities {', '.join(compiled)}, but the host has GPUs of {', '.join(old)}."]
        if old
        else []
    )


def input_problems(host: Host, build: Build) -> Iterator[str]:
    """Inputs that the roles bazel and tensorflow_build would refuse on a host that has built nothing yet."""
    variables, part = host.variables, build.part
    inputs = {name: part[name] for name in ("version", "commit", "hdfs", "kafka", "cpu_features")}
    inputs["source"] = variables.get("tensorflow_build_source", {})
    yield from tensorflow_build.input_problems(inputs)
    source = variables.get("bazel_source", "binary")
    own = {name: variables.get(name) for name in ("bazel_versions", "tensorflow_build_bazel")}
    if source in bazel.FILES and "tensorflow_build" not in host.known.deeplearning.receipts and not any(own.values()):
        yield from bazel.of_files({"source": source, "files": variables.get("bazel_files", {})}, [part["bazel"]])
