"""What the role tensorflow_build does on a host: configure's answers, bazel's flags, limits, and every reason against the build.

Pure functions of what the role gives and of what the module tensorflow_build_info read; the filter of plugins/filter/tensorflow_build.py.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hadoop_dl.data import compat
from hadoop_dl.data.versions import numbers

Json = dict[str, Any]
SCHEMA = 1  # of the key: a new one builds everything again
PACKAGES = ("numpy", "wheel", "setuptools")
# gcc's option for each CPU feature that the reader reports (plugins/module_utils/hadoop_dl_host/host_system.py, CPU_FLAGS).
OPTIONS = {
    "sse4_1": "-msse4.1",
    "sse4_2": "-msse4.2",
    "avx": "-mavx",
    "avx2": "-mavx2",
    "fma": "-mfma",
    "avx512f": "-mavx512f",
}
MEMORY_PER_JOB = 2048  # MB that one compilation may need
FEATURES = ("hdfs", "kafka")
SEPARATE_CUDNN = (1, 14)  # before this line configure takes CUDA's and cuDNN's directories one by one


def work(inputs: Mapping[str, Any], info: Mapping[str, Any]) -> Json:
    """problems: sentences; nothing is done if there is one. Else the key of the wheel, and the specification of its build."""
    sentences = list(problems(inputs, info))
    if sentences:
        return {"problems": sentences, "key": "", "spec": {}}
    row = profile(inputs["version"]) or {}  # problems() names a version without one
    answers = configure_answers(inputs, info, row)
    flags = build_flags(inputs, row)
    decides = {
        "schema": SCHEMA,
        "version": inputs["version"],
        "commit": inputs["commit"],
        "answers": answers,
        "flags": flags,
        "target": row["wheel"]["target"],
        "bazel": {"version": info["bazel"]["version"], "sha256": info["bazel"]["sha256"]},
        "compiler": {"name": compiler_kind(inputs), "version": version_of_compiler(inputs, info)},
        "os": {"short": info["os"]["short"], "name": info["os"]["name"], "glibc": info["glibc"]},
        "architecture": info["architecture"],
        "python": {"version": info["python"]["version"], "abi": info["python"]["abi"]},
        "packages": {name: info["python"]["packages"][name] for name in PACKAGES},
        "archives": {name: archive["sha256"] for name, archive in sorted(inputs["archives"].items())},
        "cpu_features": sorted(inputs["cpu_features"]),
        "hdfs": inputs["hdfs"],
        "kafka": inputs["kafka"],
        "cuda": cuda_part(inputs, info),
    }
    key = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
    wheel = row["wheel"]
    spec = {
        "version": inputs["version"],
        "tag": tag_of(inputs["version"]),
        "commit": inputs["commit"],
        "bazel": info["bazel"]["path"],
        "python": inputs["python"],
        "answers": answers,
        # Left out of the key: they change the speed of the build, not its result.
        "flags": [*flags, *limits(inputs, info)],
        "jobs": jobs(inputs, info),
        "timeout": int(inputs["timeout"]),
        "target": wheel["target"],
        "package": wheel["then"].split()[:-1] if "then" in wheel else [],
        "check": {
            "version": inputs["version"],
            "cuda": bool(inputs["cuda"]),
            **{name: True for name in FEATURES if inputs[name]},
        },
        "provenance": {**decides, "stack": inputs["stack"], "tag": tag_of(inputs["version"])},
    }
    return {"problems": [], "key": key, "spec": spec}


def tag_of(version: str) -> str:
    return f"v{version}"


def line_of(version: str) -> str:
    return ".".join(version.split(".")[:2])


def profile(version: str) -> compat.Row | None:
    """The line's row in compat/tensorflow_build.yml."""
    line = numbers(line_of(version))
    for row in compat.load().rows("tensorflow_build", "profiles"):
        if numbers(row["lines"]["first"]) <= line <= numbers(row["lines"]["last"]):
            return row
    return None


def tested(version: str) -> compat.Row | None:
    """The line's row in compat/tensorflow.yml: compiler, bazel, CUDA."""
    for row in compat.load().rows("tensorflow", "lines"):
        if row["line"] == line_of(version):
            return row
    return None


# --- configure ------------------------------------------------------------------------------------------------------


def cpu_options(features: Iterable[str]) -> str:
    """Options for exactly these features, and never those of the host that compiles."""
    return " ".join(OPTIONS[name] for name in OPTIONS if name in set(features)) or "-mtune=generic"


def configure_answers(inputs: Mapping[str, Any], info: Mapping[str, Any], row: compat.Row) -> dict[str, str]:
    """The variables that this line's configure reads, each with its value. What the site answers itself comes last."""
    cuda = inputs["cuda"]
    variables = {**row["env_common"], **row["env_gpu" if cuda else "env_cpu"]}
    python = info["python"]
    values = {
        "PYTHON_BIN_PATH": inputs["python"],
        "PYTHON_LIB_PATH": python["site"][0] if python["site"] else "",
        "CC_OPT_FLAGS": cpu_options(inputs["cpu_features"]),
        "TF_PYTHON_VERSION": python["version"],
        "GCC_HOST_COMPILER_PATH": info["compiler"]["path"],
        "CLANG_COMPILER_PATH": info["clang"]["path"],
        "CLANG_CUDA_COMPILER_PATH": info["clang"]["path"],
        "TF_NEED_HDFS": "1" if inputs["hdfs"] else "0",
        "TF_NEED_KAFKA": "1" if inputs["kafka"] else "0",
    }
    if cuda:
        toolkit, cudnn = cuda["path"], cuda.get("cudnn_path") or cuda["path"]
        values |= {
            "TF_CUDA_VERSION": cuda["version"],
            "HERMETIC_CUDA_VERSION": cuda["version"],
            "CUDA_TOOLKIT_PATH": toolkit,
            "LOCAL_CUDA_PATH": toolkit,
            "TF_CUDNN_VERSION": cuda["cudnn"].split(".")[0],
            "HERMETIC_CUDNN_VERSION": cuda["cudnn"],
            "CUDNN_INSTALL_PATH": cudnn,
            "LOCAL_CUDNN_PATH": cudnn,
            "TF_CUDA_PATHS": ",".join(dict.fromkeys((toolkit, cudnn))),
            "TF_CUDA_COMPUTE_CAPABILITIES": ",".join(inputs["capabilities"]),
            "HERMETIC_CUDA_COMPUTE_CAPABILITIES": ",".join(f"sm_{capability.replace('.', '')}" for capability in inputs["capabilities"]),
        }  # fmt: skip
        if numbers(line_of(inputs["version"])) < SEPARATE_CUDNN:
            variables = {**variables, "CUDA_TOOLKIT_PATH": "", "CUDNN_INSTALL_PATH": ""}
    answers = {name: values.get(name, str(value)) for name, value in variables.items()}
    optional = [name for name, value in answers.items() if value.startswith("<optional")]
    return {name: value for name, value in answers.items() if name not in optional} | dict(inputs["answers"])


# --- bazel ----------------------------------------------------------------------------------------------------------


def in_tree(version: str, feature: str) -> bool:
    """Whether this line can be built with the feature."""
    row = profile(version) or {}
    record = next(
        entry for entry in compat.load().rows("tensorflow_build", "from_source") if entry["feature"] == feature
    )
    ranged = numbers(record["first"]) <= numbers(line_of(version)) <= numbers(record["last"])
    return ranged or bool(row.get("switches", {}).get(feature, {}).get("enabled"))


def build_flags(inputs: Mapping[str, Any], row: compat.Row) -> list[str]:
    """What decides the wheel: the line's flags, its switches, the site's."""
    flags = str(row["bazel_flags"]["all"]).split()
    if inputs["cuda"] and str(row["bazel_flags"].get("gpu", "")).startswith("--"):
        flags += str(row["bazel_flags"]["gpu"]).split()
    for feature in FEATURES:
        switch = row.get("switches", {}).get(feature)
        if switch and in_tree(inputs["version"], feature):
            flags += switch["enabled" if inputs[feature] else "disabled"]
    if "repo_env" in row["wheel"]:
        flags.append("--repo_env=WHEEL_NAME=tensorflow")  # the project that the built lock names, on the CPU too
    if inputs["archives"]:
        flags.append(f"--distdir={inputs['root']}/archives")
    return flags + list(inputs["flags"])


def jobs(inputs: Mapping[str, Any], info: Mapping[str, Any]) -> int:
    """The number of parallel jobs, by the host's cores and memory."""
    fitting = int(info["memory_mb"]) // MEMORY_PER_JOB
    return int(inputs["jobs"]) or max(1, min(int(info["cores"]), fitting))


def limits(inputs: Mapping[str, Any], info: Mapping[str, Any]) -> list[str]:
    """bazel's limits; 512 MB are left to the system. Before 0.25 bazel has one option for memory, cores and disks."""
    memory = max(1024, int(info["memory_mb"]) - 512)
    count = jobs(inputs, info)
    old = numbers(info["bazel"]["version"]) < (0, 25)
    cap = f"--local_resources={memory},{count},1.0" if old else f"--local_ram_resources={memory}"
    return [f"--jobs={count}", cap]


# --- problems -------------------------------------------------------------------------------------------------------


def compiler_kind(inputs: Mapping[str, Any]) -> str:
    row = tested(inputs["version"])
    return str(row["compiler"]["name"]) if row else "gcc"


def version_of_compiler(inputs: Mapping[str, Any], info: Mapping[str, Any]) -> str:
    return str(info["clang" if compiler_kind(inputs) == "clang" else "compiler"]["version"])


def cuda_part(inputs: Mapping[str, Any], info: Mapping[str, Any]) -> Json:
    if not inputs["cuda"]:
        return {}
    return {
        "version": inputs["cuda"]["version"],
        "cudnn": inputs["cuda"]["cudnn"],
        "capabilities": list(inputs["capabilities"]),
        "headers": {name: info[f"{name}_headers"]["sha256"] for name in ("cuda", "cudnn")},
    }


def problems(inputs: Mapping[str, Any], info: Mapping[str, Any]) -> Iterator[str]:
    """Everything that is missing on the host and in the inputs, at once."""
    version = inputs["version"]
    row, line = profile(version), tested(version)
    if row is None or line is None:
        yield f"The build of TensorFlow {version} is not known: compat/tensorflow_build.yml and compat/tensorflow.yml need a row for its line."
        return
    yield from input_problems(inputs)
    yield from host_problems(inputs, info)
    yield from tool_problems(inputs, info, line)
    yield from python_problems(info)
    if inputs["cuda"]:
        yield from cuda_problems(inputs, info)


def input_problems(inputs: Mapping[str, Any]) -> Iterator[str]:
    """What the inputs alone decide; the plan refuses with it as well."""
    version = inputs["version"]
    if not re.fullmatch(r"[0-9a-f]{40}", inputs["commit"]):
        yield f"tensorflow_build_commit must be the 40 hexadecimal digits of the commit of {tag_of(version)}, but is {inputs['commit']!r}."
    source = inputs["source"]
    if not source.get("file") or not re.fullmatch(r"[0-9a-f]{64}", str(source.get("sha256", ""))):
        yield (
            f"The sources of TensorFlow {version} are required as a git bundle with its sha256, but tensorflow_build_source has none. Make it where there is "
            f"internet access: git clone --branch {tag_of(version)} https://github.com/tensorflow/tensorflow && git -C tensorflow bundle create tensorflow.bundle {tag_of(version)}"
        )
    for feature in FEATURES:
        if inputs[feature] and not in_tree(version, feature):
            yield f"TensorFlow {version} cannot be built with {feature}: it has no sources for it. Set {feature}: false, and use tensorflow-io."
    unknown = sorted(set(inputs["cpu_features"]) - set(OPTIONS))
    if unknown:
        yield f"tensorflow_build_cpu_features must be of {', '.join(OPTIONS)}, but has {', '.join(unknown)}."


def host_problems(inputs: Mapping[str, Any], info: Mapping[str, Any]) -> Iterator[str]:
    if info["architecture"] != "x86_64":
        yield f"The build is for x86_64, but this host is {info['architecture']}."
    if info["foreign_entries"]:
        yield (
            f"tensorflow_build_root must be a new or empty directory, because builds write and remove there, but {inputs['root']} has "
            f"{', '.join(info['foreign_entries'])}. Name another one."
        )
    for resource, available_mb, required_mb in (
        ("memory", info["memory_mb"], inputs["memory_min_mb"]),
        (f"free disk in {inputs['root']}", info["disk_free_mb"], inputs["disk_min_mb"]),
    ):
        if int(available_mb) < int(required_mb):
            yield f"{required_mb} MB of {resource} are required, but this host has {available_mb} MB. Free some, or take a larger host."


def tool_problems(inputs: Mapping[str, Any], info: Mapping[str, Any], line: compat.Row) -> Iterator[str]:
    for name, package in (("git", "git"), ("objdump", "binutils")):
        if not info["tools"][name]:
            yield f"{name} is required, but is missing. Install the package {package}."
    bazel = info["bazel"]
    low, high = line["bazel"]["min"], line["bazel"]["max"]
    span = f"{low} to {high}" if high else f"{low} or later"
    if not bazel["path"]:
        yield f"bazel {span} is required in {inputs['bazel']}, but is missing. Install it with the role bazel."
    elif not bazel["version"]:
        yield f"{inputs['bazel']} must be an executable of bazel, but no server is in it, and no package of the system has it."
    elif numbers(bazel["version"]) < numbers(low) or (high and numbers(bazel["version"]) > numbers(high)):
        yield f"TensorFlow {inputs['version']} requires bazel {span}, but {bazel['path']} is {bazel['version']}. Set the stack's bazel to one of these."
    compiler = line["compiler"]
    host_compiler = info["clang" if compiler["name"] == "clang" else "compiler"]
    setting = "tensorflow_build_clang" if compiler["name"] == "clang" else "tensorflow_build_compiler"
    if not host_compiler["version"]:
        yield f"{compiler['name']} {compiler['version']} or later is required, but is missing. Install it, or name it in {setting}."
    elif numbers(host_compiler["version"])[:1] < numbers(compiler["version"])[:1]:
        yield (
            f"TensorFlow {inputs['version']} requires {compiler['name']} {compiler['version']} or later, but {host_compiler['path']} is {host_compiler['version']}. "
            f"Install a devtoolset, and name it in {setting} and tensorflow_build_path."
        )


def python_problems(info: Mapping[str, Any]) -> Iterator[str]:
    python = info["python"]
    if not python:
        yield "tensorflow_build_python must be an interpreter of this host, but it does not answer."
        return
    if not python["include"]:
        yield f"Python's headers are required in {python['headers']}, but Python.h is missing. Install python-devel for Python {python['version']}."
    missing = [name for name in PACKAGES if name not in python["packages"]]
    if missing:
        yield f"The build's Python must have {', '.join(missing)}, but it does not. Install the stack's lock into it."


def cuda_problems(inputs: Mapping[str, Any], info: Mapping[str, Any]) -> Iterator[str]:
    cuda = inputs["cuda"]
    path = cuda["path"]
    if not info["nvcc"]:
        yield f"CUDA {cuda['version']} is required, but {path}/bin/nvcc is missing. Install the toolkit (cuda_versions)."
    headers = info["cuda_headers"]
    encoded = "".join(headers["found"][:1])
    header_version = f"{int(encoded) // 1000}.{int(encoded) % 1000 // 10}" if encoded else ""
    if header_version != cuda["version"]:
        yield f"CUDA's headers must be of {cuda['version']}, but {path}/include/cuda.h is {header_version or 'missing'}."
    header_version = ".".join(info["cudnn_headers"]["found"][:3])
    if numbers(header_version)[:1] != numbers(cuda["cudnn"])[:1]:
        yield f"cuDNN's headers must be of {cuda['cudnn']}, but {header_version or 'no header'} was found. Install cudnn with its development files."
    if not inputs["capabilities"]:
        yield "The build for CUDA needs a compute capability, but no host that runs the wheel shows a GPU. Set tensorflow_build_capabilities."
    wrong = beyond(inputs["capabilities"], cuda["version"])
    if wrong:
        yield f"nvcc of CUDA {cuda['version']} does not know the compute capabilities {', '.join(wrong)}. Take a newer CUDA for these GPUs."


def nvcc_span(version: str) -> tuple[str, str] | None:
    for row in compat.load().rows("cuda", "toolkits"):
        if row["version"] == version:
            return str(row["nvcc_min_cc"]), str(row["nvcc_max_cc"])
    return None


def beyond(capabilities: Iterable[str], version: str) -> list[str]:
    """The capabilities that this CUDA's compiler cannot compile for."""
    span = nvcc_span(version)
    if span is None:
        return []
    return [
        capability for capability in capabilities if not numbers(span[0]) <= numbers(capability) <= numbers(span[1])
    ]
