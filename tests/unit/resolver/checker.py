"""A second opinion on answers, written from compat/README.md and sharing no code with the resolver.

`problems(request, stack)` lists in sentences what is wrong with a stack as an answer to a request.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

COMPAT = Path(__file__).resolve().parents[3] / "compat"
Json = dict[str, Any]


@cache
def data(subject: str) -> Json:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = (COMPAT / f"{subject}.yml").read_text(encoding="utf-8")
    content: Json = yaml.load(text, Loader=loader)  # noqa: S506 (both are safe loaders)
    return content


def numbers(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)]


def compare(left: str, right: str) -> int:
    first, second = numbers(left), numbers(right)
    width = max(len(first), len(second))
    first, second = (first + [0] * (width - len(first)), second + [0] * (width - len(second)))
    return (first > second) - (first < second)


def in_range(value: str, wanted: str) -> bool:
    """A range as pip writes it, without its corner cases."""
    for part in wanted.replace(" ", "").split(","):
        match = re.fullmatch(r"(<=|>=|==|!=|~=|<|>)([\w.*]+)", part)
        assert match, part
        operator, limit = match[1], match[2]
        order = compare(value, limit.replace("rc0", ""))
        fits = {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0, "==": order == 0, "!=": order != 0}
        if operator == "~=":
            if order < 0 or numbers(value)[: len(numbers(limit)) - 1] != numbers(limit)[:-1]:
                return False
        elif limit.endswith(".*"):
            if numbers(value)[: len(numbers(limit))] != numbers(limit):
                return False
        elif not fits[operator]:
            return False
    return True


def meets(value: str | None, constraint: str) -> bool:
    if constraint == "none":
        return value is None
    if value is None:
        return False
    if constraint[0] in "<>=!~":
        return in_range(value, constraint)
    return value == constraint or value.startswith(constraint + ".") or compare(value, constraint) == 0


def row(subject: str, name: str, key: str, value: str) -> Json:
    return next(entry for entry in data(subject)[name] if entry[key] == value)


def line_of(tensorflow: str) -> Json:
    return row("tensorflow", "lines", "line", row("tensorflow", "releases", "version", tensorflow)["line"])


def problems(request: Json, stack: Json) -> list[str]:
    return [
        *request_problems(request, stack),
        *wheel_problems(request, stack),
        *cuda_problems(stack),
        *gpu_problems(request, stack),
        *driver_problems(request, stack),
        *package_problems(stack),
        *jvm_problems(stack),
        *feature_problems(stack),
        *system_problems(request, stack),
        *site_problems(request, stack),
    ]


def request_problems(request: Json, stack: Json) -> list[str]:
    """The answer must have what was requested."""
    reasons = []
    for name, value in request.items():
        if name in ("os", "gpu", "hadoop", "yarn_gpu", "cdsw"):
            continue  # system_problems, gpu_problems, site_problems
        if name == "cpu_features":
            if not set(stack.get(name, [])) <= set(value.split(",")):
                reasons.append(f"the wheel needs {stack[name]}, and the CPU has {value}")
            continue
        if name in ("hdfs", "kafka"):
            if stack[name] is not (value == "true"):
                reasons.append(f"{name} is {stack[name]}, and {value} was asked for")
        elif name == "driver":
            if not meets(stack.get("driver_branch"), value.partition(".")[0]):
                reasons.append(f"driver branch {stack.get('driver_branch')} is not that of {value}")
        elif name == "java":
            if not any(meets(java, value) for java in stack.get("java", [])):
                reasons.append(f"java {stack.get('java')} is not {value}")
        elif not meets(stack.get(name), value):
            reasons.append(f"{name} {stack.get(name)} is not {value}")
    return reasons


def system_of(request: Json) -> str | None:
    name = request.get("os")
    if name and name.startswith("ubuntu"):
        return name.replace("-", "").replace(".", "")  # type: ignore[no-any-return]
    return re.sub(r"-(\d+).*", r"\1", name) if name else None


def wheel_problems(request: Json, stack: Json) -> list[str]:
    release = row("tensorflow", "releases", "version", stack["tensorflow"])
    line, reasons = line_of(stack["tensorflow"]), []
    digits = stack["python"].replace(".", "")
    wheels = release["wheels"]
    if stack["tensorflow_source"] == "prebuilt":
        variant = "gpu" if "cuda" in stack else "cpu"
        wheels = [w for w in wheels if w["package"] == stack["tensorflow_package"] and w["variant"] == variant]
    if not any(re.fullmatch(rf"cp{digits}\D*", abi) for wheel in wheels for abi in wheel["abis"]):
        reasons.append(f"there is no {stack['tensorflow_package']} {stack['tensorflow']} for Python {stack['python']}")
    system = system_of(request)
    if system:
        glibc = row("platforms", "systems", "os", system)["glibc"]
        if compare(line["wheel_min_glibc"], glibc) > 0:
            reasons.append(f"glibc {glibc} of {system} is too old")
    return reasons


def cuda_problems(stack: Json) -> list[str]:
    line, reasons = line_of(stack["tensorflow"]), []
    if "cuda" not in stack:
        extra = {"cudnn", "nccl", "driver_min", "driver_branch", "driver_module"} & set(stack)
        return [f"a CPU stack has {sorted(extra)}"] if extra else []
    rows = [(r["line"], r["cuda"], r["cudnn"]) for r in data("tensorflow_build")["other_cuda"]]
    if stack["cuda"] != line["cuda"]:
        if stack["tensorflow_source"] != "built" or (line["line"], stack["cuda"]) not in [entry[:2] for entry in rows]:
            reasons.append(f"CUDA {stack['cuda']} is not that of TensorFlow {line['line']}")
    elif numbers(stack["cudnn"])[0] != line["cudnn_soname"] or compare(stack["cudnn"], line["cudnn"]) < 0:
        reasons.append(f"cuDNN {stack['cudnn']} is not {line['cudnn']} or a newer one of its soname")
    if stack["tensorflow_source"] == "built" and "gcc" in stack:
        toolkit = row("cuda", "toolkits", "version", stack["cuda"])
        if numbers(stack["gcc"])[0] > int(toolkit["gcc_max"]) or numbers(stack["gcc"])[0] < int(
            toolkit["gcc_min"] or 0
        ):
            reasons.append(f"CUDA {stack['cuda']} does not accept gcc {stack['gcc']}")
    return reasons


def devices(request: Json) -> list[Json]:
    gpus = request.get("gpu", "")
    names = [name for name in (gpus.split(",") if isinstance(gpus, str) else gpus) if name and name != "none"]
    return [
        next(entry for entry in data("gpus")["devices"] if name in re.split(r"[ /]+", entry["name"])) for name in names
    ]


def same_model(device: Json) -> list[Json]:
    """The rows of all devices that share a word of the name's beginning."""
    name = device["name"].removeprefix("Tesla ").split(" ")[0]
    return [
        entry
        for entry in data("gpu_devices")["devices"]
        if any(name in re.split(r"[ -]", model) for model in entry["names"]) or entry["pci_id"] == device["pci_id"]
    ]


def gpu_problems(request: Json, stack: Json) -> list[str]:
    """Deciding whether a GPU fits, 3 and 4."""
    reasons, line = [], line_of(stack["tensorflow"])
    for device in devices(request):
        capability = numbers(device["cc"])
        if "cuda" not in stack:
            reasons.append(f"a CPU build does not use {device['name']}")
            continue
        toolkit = row("cuda", "toolkits", "version", stack["cuda"])
        if stack["tensorflow_source"] == "built":
            if not numbers(toolkit["nvcc_min_cc"]) <= capability <= numbers(toolkit["nvcc_max_cc"]):
                reasons.append(f"CUDA {stack['cuda']} makes no code for {device['name']}")
            continue
        native = has_code(device, stack)
        if not native and not any(numbers(ptx) <= capability for ptx in line["wheel_ptx"]):
            reasons.append(f"the wheel has neither code nor PTX for {device['name']}")
        if not native and capability[0] > 9 and (line.get("generated_ptx") or "9.0a").endswith("a"):
            reasons.append(f"the wheel of {line['line']} has no kernels for {device['name']}")
        if not native and capability[0] <= 9 and capability > numbers(toolkit["nvcc_max_cc"]):
            reasons.append(f"CUDA {stack['cuda']} has no kernels for {device['name']}")
    return reasons


def has_code(device: Json, stack: Json) -> bool:
    """Whether the wheel has machine code for this GPU; it compiles PTX for the others."""
    major, minor = numbers(device["cc"])
    return any(numbers(sm)[0] == major and numbers(sm)[1] <= minor for sm in line_of(stack["tensorflow"])["wheel_sm"])


def driver_problems(request: Json, stack: Json) -> list[str]:
    """Deciding whether a GPU fits, 2 and 5; and the kind of kernel module."""
    if "cuda" not in stack:
        return []
    reasons = []
    branch = row("drivers", "branches", "branch", stack["driver_branch"])
    number = int(branch["branch"])
    toolkit = row("cuda", "toolkits", "version", stack["cuda"])
    driver = request.get("driver", "")
    system = system_of(request)
    packaged_versions = branch["releases"].get(system) or [branch.get("latest_listed", branch["latest_known"])]
    version = driver if "." in driver and driver[0].isdigit() else packaged_versions[0]
    floors = [floor for floor in (toolkit["min_driver"], toolkit["min_driver_minor_compat"]) if floor]
    if all(compare(version, floor) < 0 for floor in floors):
        reasons.append(f"driver {version} is older than CUDA {stack['cuda']} needs")
    if stack["tensorflow_source"] == "prebuilt" and not all(has_code(device, stack) for device in devices(request)):
        floors = [toolkit["bundled_driver"]]
        if compare(version, toolkit["bundled_driver"]) < 0:
            reasons.append(f"driver {version} cannot compile PTX of CUDA {stack['cuda']}")
    for device in devices(request):
        firsts = [entry["first_drivers"][0] for entry in same_model(device) if "first_drivers" in entry]
        device_row = row("gpu_devices", "devices", "pci_id", device["pci_id"])
        versions = [first for first in device_row.get("first_drivers", ()) if first.split(".")[0] == branch["branch"]]
        model = device["name"].removeprefix("Tesla ").split(" ")[0]
        entries = [entry for entry in data("gpus")["devices"] if model in re.split(r"[ /]+", entry["name"])]
        firsts += [first for entry in entries for first in entry.get("first_drivers", ())]
        architecture = row("gpus", "architectures", "cc", device["cc"])
        floors += [*firsts, *filter(None, [architecture["first_driver_branch"]])]
        if versions and compare(version, versions[0]) < 0:
            reasons.append(f"driver {version} does not know {device['name']}")
        if branch["branch"] in device_row.get("not_in", ()):
            reasons.append(f"branch {branch['branch']} does not know {device['name']}")
        if branch["verified"] and numbers(branch["min_cc"]) > numbers(device["cc"]):
            reasons.append(f"branch {number} does not drive {device['name']}")
        if architecture["last_driver_branch"] and number > int(architecture["last_driver_branch"]):
            reasons.append(f"branch {number} no longer drives {device['name']}")
        if architecture["first_driver_branch"] and number < int(architecture["first_driver_branch"]):
            reasons.append(f"branch {number} does not yet drive {device['name']}")
        if stack["driver_module"] == "open" and not architecture["open_kernel_module"]:
            reasons.append(f"the open modules do not drive {device['name']}")
        if stack["driver_module"] == "proprietary" and device["architecture"] == "Blackwell":
            reasons.append(f"the proprietary modules do not drive {device['name']}")
    if stack["driver_min"] not in floors:
        reasons.append(f"driver_min {stack['driver_min']} is not of CUDA {stack['cuda']}")
    if system and system.startswith("rhel") and branch["verified"] and system not in branch["releases"]:
        reasons.append(f"branch {branch['branch']} is not packaged for {system}")
    if stack["driver_module"] == "open" and number < 515:
        reasons.append(f"branch {number} has no open modules")
    return reasons


def package_problems(stack: Json) -> list[str]:
    line, reasons = line_of(stack["tensorflow"]), []
    keras = line["keras"]
    if keras.get("package") and not in_range(stack["keras"], keras["range"]):
        reasons.append(f"Keras {stack['keras']} is not {keras['range']}")
    if stack.get("bazel") and stack["tensorflow_source"] != "built":
        reasons.append("a wheel needs no bazel")
    if stack["tensorflow_source"] == "built":
        bazel = line["bazel"]
        if compare(stack["bazel"], bazel["min"]) < 0 or (bazel["max"] and compare(stack["bazel"], bazel["max"]) > 0):
            reasons.append(f"bazel {stack['bazel']} is not within {bazel['min']} and {bazel['max']}")
    if "tensorflow_io" in stack:
        io = row("tensorflow_io", "releases", "version", stack["tensorflow_io"])
        observed = [entry for entry in data("tensorflow_io")["observed"] if entry["tensorflow_io"] == io["version"]]
        lines = [entry["tensorflow"].rpartition(".")[0] for entry in observed if entry["result"] == "ok"]
        if line["line"] not in (io["tensorflow"], *lines):
            reasons.append(f"tensorflow-io {io['version']} is for TensorFlow {io['tensorflow']}")
        if not any(re.fullmatch(rf"cp{stack['python'].replace('.', '')}\D*", abi) for abi in io["abis"]):
            reasons.append(f"tensorflow-io {io['version']} has no wheel for Python {stack['python']}")
    return reasons


def jvm_problems(stack: Json) -> list[str]:
    reasons, line = [], line_of(stack["tensorflow"])["line"]
    if "tensorflowonspark" in stack:
        tfos = row("tensorflowonspark", "releases", "version", stack["tensorflowonspark"])
        least, below = tfos["tensorflow"]["min"], tfos["tensorflow"]["below"]
        if tfos["verified"] and ((least and compare(line, least) < 0) or (below and compare(line, below) >= 0)):
            reasons.append(f"TensorFlowOnSpark {tfos['version']} is not for TensorFlow {line}")
        if tfos["requires_python"] and not in_range(stack["python"], tfos["requires_python"]):
            reasons.append(f"TensorFlowOnSpark {tfos['version']} is not for Python {stack['python']}")
        names = tfos["tensorflow_distribution"].split(", ")
        if names != ["any"] and stack["tensorflow_package"] not in names:
            reasons.append(f"TensorFlowOnSpark {tfos['version']} does not find {stack['tensorflow_package']}")
        if "pyspark" not in stack:
            reasons.append("TensorFlowOnSpark needs Spark")
    if "pyspark" in stack:
        spark = row("spark", "lines", "line", ".".join(stack["pyspark"].split(".")[:2]))
        spans = [part.split("-") for part in spark["python"].replace(" ", "").split(",")]
        if not any(compare(span[0], stack["python"]) <= 0 <= compare(span[-1], stack["python"]) for span in spans):
            reasons.append(f"Spark {spark['line']} is not for Python {stack['python']}")
        if not set(stack.get("java", [])) <= set(spark["java"] or []):
            reasons.append(f"Spark {spark['line']} does not run on Java {stack['java']}")
    return reasons


def feature_problems(stack: Json) -> list[str]:
    reasons, line = [], line_of(stack["tensorflow"])
    for name in ("hdfs", "kafka"):
        supported = line[name]["prebuilt"]
        if stack["tensorflow_source"] == "built":
            span = row("tensorflow_build", "from_source", "feature", name)
            supported = compare(span["first"], line["line"]) <= 0 <= compare(span["last"], line["line"])
        io = row("tensorflow_io", "releases", "version", stack["tensorflow_io"]) if "tensorflow_io" in stack else {}
        by_io = io.get("hdfs_filesystem") == "plugin" if name == "hdfs" else bool(io.get("kafka"))
        if stack[name] and not supported and not by_io:
            reasons.append(f"nothing in the stack reads {name}")
    return reasons


def system_problems(request: Json, stack: Json) -> list[str]:
    """CUDA's packages for the operating system."""
    system, reasons = system_of(request), []
    if not system:
        return []
    support_rows = [entry for entry in data("cuda")["os_support"] if entry["os"] == system and entry["verified"]]
    by_pip = stack["tensorflow_source"] == "prebuilt" and compare(stack["tensorflow"], "2.14") >= 0
    # An older CUDA is a doubt: a site may bring its packages.
    if "cuda" in stack and support_rows and not by_pip and compare(stack["cuda"], support_rows[0]["last"]) > 0:
        reasons.append(f"NVIDIA does not package CUDA {stack['cuda']} for {request['os']}")
    return reasons


def site_problems(request: Json, stack: Json) -> list[str]:
    """YARN's GPU scheduling and CDSW."""
    reasons = []
    if request.get("yarn_gpu") == "true":
        spark = row("spark", "lines", "line", ".".join(stack["pyspark"].split(".")[:2])) if "pyspark" in stack else {}
        if spark and not spark["gpu_scheduling"]:
            reasons.append(f"Spark {stack['pyspark']} does not schedule GPUs")
        if request.get("hadoop") in ("cdh-5.16", "cdh-6.3"):
            reasons.append(f"{request['hadoop']} does not schedule GPUs")
    if request.get("cdsw") == "true":
        if len({device["architecture"] for device in devices(request)}) > 1:
            reasons.append("CDSW wants one model of GPU")
        if system_of(request) not in (None, "rhel7"):
            reasons.append(f"CDSW has no packages for {request['os']}")
    return reasons
