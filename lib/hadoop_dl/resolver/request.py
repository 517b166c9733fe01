"""A request as a list of items: each component's constraint, and each fact about the host, is one."""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hadoop_dl.data.compat import Compat
from hadoop_dl.data.host_facts import HostProfile
from hadoop_dl.resolver.gpus import Gpu, UnknownGpu, find_gpu
from hadoop_dl.resolver.hosts import Hadoop, System, Unknown, find_hadoop, find_system
from hadoop_dl.resolver.versions import LONGEST, NONE, Spec, listed, newest, parse_spec

# What an item constrains: TensorFlow builds, or parts (their `level`); see constraint_problem.py.
OF_BUILD = ("tensorflow",)


@dataclass(frozen=True)
class Component:
    """What a request may name: its name in messages, what an item of it constrains, and what its value may be.

    example: of an argument of scripts/stack; optional: it may be none.
    """

    words: str
    levels: tuple[str, ...]
    help: str
    example: str = ""
    optional: bool = False


# Answers have this order.
COMPONENTS = {
    "tensorflow": Component("TensorFlow", OF_BUILD, "release or line: 1.15, 2.15.1, '>=2.4,<2.12'"),
    "tensorflow_package": Component(
        "the package", OF_BUILD, "tensorflow, tensorflow-gpu or tensorflow-cpu, as on PyPI", "tensorflow"
    ),
    "tensorflow_source": Component(
        "tensorflow_source", OF_BUILD, "prebuilt (a wheel of PyPI) or built (from source)", "prebuilt"
    ),
    "python": Component("Python", OF_BUILD, "2.7, 3.6, 3.11", "3.11"),
    "cuda": Component("CUDA", OF_BUILD, "10.0, 12.2; none for builds without CUDA", optional=True),
    "cudnn": Component("cuDNN", ("cudnn",), "7.6, 8.9; a beginning is enough", optional=True),
    "nccl": Component("NCCL", OF_BUILD, "2.16.5; none", optional=True),
    "driver": Component("driver", ("driver",), "one exact driver, 535.104.05, or a branch, 535", optional=True),
    "driver_min": Component(
        "a minimum driver of", ("driver",), "the oldest driver that the stack may need", "535.104.05"
    ),
    "driver_branch": Component("driver branch", ("driver",), "470, 535, 580", optional=True),
    "driver_module": Component("driver_module", ("driver",), "proprietary or open, the kind of kernel module", "open"),
    "bazel": Component("bazel", ("build_tools",), "0.26.1, for a build from source", "0.26.1"),
    "gcc": Component("gcc", ("build_tools",), "7.3.1, for a build from source", "7.3.1"),
    "keras": Component("Keras", ("keras",), "2.3.1, 3; none", optional=True),
    "tensorflow_io": Component("tensorflow-io", ("tensorflow_io",), "0.36.0; none", optional=True),
    "tensorflowonspark": Component("TensorFlowOnSpark", ("spark",), "1.4.4, 2.2.5; none", optional=True),
    "pyspark": Component("PySpark", ("spark",), "3.0.3, 3.5; none", optional=True),
    "java": Component("Java", ("spark",), "8, 11, 17: what Spark runs on", optional=True),
    "glibc_min": Component("a minimum glibc of", OF_BUILD, "the newest glibc that the wheel may need", "2.17"),
    "cpu_features": Component("CPU features", OF_BUILD, "what the CPU has: avx,avx2,fma; or none", "avx,avx2"),
    "hdfs": Component("HDFS", ("tensorflow_io", "site"), "true or false: TensorFlow reads hdfs:// paths", "true"),
    "kafka": Component("Kafka", ("tensorflow_io",), "true or false: TensorFlow reads Kafka topics", "true"),
    "yarn_gpu": Component("GPU scheduling in YARN", ("spark", "site"), "true or false: YARN schedules GPUs", "true"),
    "cdsw": Component(
        "CDSW",
        ("site",),
        "true or false, or its release, 1.10: the host runs Cloudera Data Science Workbench",
        "true",
    ),
}
OPTIONS = {
    "os": Component("os", ("tensorflow", "driver", "site"), "", "rhel-9.4"),
    "gpu": Component("gpu", ("tensorflow", "driver", "cudnn", "site"), "", "A100"),
    "hadoop": Component("hadoop", ("spark", "site"), "", "cdp-7.1"),
}
CHOICES = {
    "tensorflow_source": ("prebuilt", "built"),
    "driver_module": ("proprietary", "open"),
    "tensorflow_package": ("tensorflow", "tensorflow-gpu", "tensorflow-cpu"),
}
BOOLEANS = ("hdfs", "kafka", "yarn_gpu")
TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
ORDER = [*OPTIONS, *COMPONENTS]


class Misuse(ValueError):
    """A request that cannot be read: an unknown component or an invalid value. The message has the nearest name."""


@dataclass(frozen=True)
class Item:
    """One constraint or host fact. `label` is its name in messages; `subject` is what an OS, GPU or Hadoop name stands for."""

    key: str
    text: str
    label: str
    specs: tuple[Spec, ...] = ()
    subject: System | Gpu | Hadoop | HostProfile | Unknown | UnknownGpu | None = None
    # The fact of a host that this item carries: python, glibc, cpu, java, spark; for an OS: its host was read.
    host_fact: str = ""
    levels: tuple[str, ...] = field(default=())

    def accepts(self, value: str | None) -> bool:
        return any(spec.accepts(value) for spec in self.specs)

    @property
    def flag(self) -> bool:
        return self.text == "true"

    @property
    def absent(self) -> bool:
        return self.text == "none"


def nearest_name(name: str, names: Iterable[str]) -> str:
    """` Did you mean X?` for the nearest known name, which there always is."""
    sorted_names = sorted(names)
    close = difflib.get_close_matches(name.lower().replace("-", "_"), sorted_names, n=1, cutoff=0.0)
    return f" Did you mean {close[0]}?" if close else ""


ELSEWHERE = {
    "mig": "A slice of a GPU is named with the GPU: --gpu 'A100 MIG 1g.5gb'.",
    "cml": "Cloudera Machine Learning is not covered: its sessions have runtimes, not CDSW's engine images. Leave cml out.",
    "kerberos": "Kerberos changes no version: it is hadoop_login, a setting of the inventory (docs/operate/kerberos.md). Leave kerberos out.",
}


def check_names(names: Iterable[str]) -> None:
    for name in names:
        if name in ("numpy", "protobuf"):
            raise Misuse(
                f"{name} is decided by pip: scripts/stack resolve prints the limit that it needs. Leave {name} out."
            )
        if name in ELSEWHERE:
            raise Misuse(ELSEWHERE[name])
        if name not in COMPONENTS and name not in OPTIONS:
            raise Misuse(
                f"{name} is no component of a request.{nearest_name(name, ORDER)} Known: {', '.join(COMPONENTS)}; "
                f"and {', '.join(OPTIONS)}."
            )


def texts(name: str, value: Any) -> list[str]:
    """A value of a request as texts: each of them must be met. A list of versions means any of them."""
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, float):
        raise Misuse(
            f"{name} must be a quoted version, but is the number {value}. Write it as text: YAML reads 1.10 as 1.1."
        )
    if isinstance(value, (list, tuple)):
        parts = [text for part in value for text in texts(name, part)]
        return parts if name in ("gpu", "cpu_features") else ["|".join(parts)]
    text = "" if value is None else str(value).strip()
    if len(text) > LONGEST:
        raise Misuse(f"{name} must have at most {LONGEST} characters but has {len(text)}.")
    if not text:
        component = {**OPTIONS, **COMPONENTS}[name]
        example = component.example or ("none" if component.optional else "1.15")
        argument = f"--{name} {example}" if name in OPTIONS else f"{name}={example}"
        raise Misuse(f"{name} needs a value, but has none. Write for example {argument}, or leave {name} out.")
    if name == "gpu":
        return [part.strip() for part in text.split(",") if part.strip()]
    if name == "os" and text.lower().startswith("other"):
        return [text]
    return both(text) if name not in ("cpu_features", *BOOLEANS, *CHOICES) else [text]


def both(text: str) -> list[str]:
    """`>=2.4,<2.12` is one range; `2.15,2.15.0` is two constraints, which both must be met."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    ranges = [part for part in parts if re.match(r"[<>=!~]", part)]
    plain = [part for part in parts if part not in ranges]
    return [*plain, *([",".join(ranges)] if ranges else [])] or [text]


def read_request(compat: Compat, request: Mapping[str, Any], host: HostProfile | None = None) -> list[Item]:
    """The items of a request, each once, in an order that does not depend on the request's."""
    check_names(request)
    items_by_key: dict[tuple[str, str], Item] = {}
    values = {name: texts(name, value) for name, value in request.items()}
    if host is not None:
        for name, value in (("os", host.os), ("hadoop", host.hadoop)):
            if value and name not in values:
                values[name] = [value]
        if host.gpus and "gpu" not in values:
            values["gpu"] = list(host.gpus)
    for name in ORDER:
        if name == "cpu_features" and name in values:
            values[name] = [",".join(sorted({part.strip() for text in values[name] for part in text.split(",")}))]
        for text in values.get(name, []):
            item = make_item(compat, name, text, read=host is not None and host.pythons is not None)
            key = (name, item.label if name == "gpu" else item.text)
            items_by_key.setdefault(key, item)
    items = sorted(items_by_key.values(), key=lambda item: (ORDER.index(item.key), item.text))
    return items + host_items(host)


def make_item(compat: Compat, name: str, text: str, read: bool = False) -> Item:
    component = {**OPTIONS, **COMPONENTS}[name]
    levels, words = component.levels, component.words
    if name == "os":
        system = find_system(compat, text)
        label = system.label if isinstance(system, System) else text
        return Item(name, text, label, subject=system, host_fact="read" if read else "", levels=levels)
    if name == "gpu":
        if text.lower() in NONE:
            return Item(name, "none", "a host without GPUs", levels=levels)
        model = find_gpu(compat, text)
        label = model.name if isinstance(model, Gpu) else text
        return Item(name, text, label, subject=model, levels=levels)
    if name == "hadoop":
        hadoop = find_hadoop(compat, text)
        return Item(name, text, hadoop.label if isinstance(hadoop, Hadoop) else text, subject=hadoop, levels=levels)
    if name in BOOLEANS or (name == "cdsw" and text.lower() in TRUE + FALSE):
        low = text.lower()
        if low not in TRUE + FALSE:
            raise Misuse(f"{name} must be true or false, but is {text}. Write {name}=true or {name}=false.")
        flag = "true" if low in TRUE else "false"
        return Item(name, flag, words if flag == "true" else f"no {words}", levels=levels)
    if name in CHOICES:
        plain = text.partition("[")[0]
        return Item(name, plain, f"{name}={plain}", (Spec(plain, "prefix"),), levels=levels)
    if name == "cpu_features":
        return Item(name, text.lower(), f"a CPU with {text.lower().replace(',', ', ')}", levels=levels)
    specs = tuple(parse_spec(as_data_writes(name, part)) for part in text.split("|"))
    spec_text = listed([spec.text for spec in specs], "or")
    if specs[0].kind == "none":
        return Item(name, "none", f"no {words}", specs, levels=levels)
    return Item(name, "|".join(spec.text for spec in specs), f"{words} {spec_text}", specs, levels=levels)


def as_data_writes(name: str, text: str) -> str:
    """NVIDIA writes branches as R535, packages nvidia-driver-535, and `java -version` prints Java 8 as 1.8."""
    if name in ("driver", "driver_branch"):
        return re.sub(r"^([<>=!~]*)(?:[rR]|nvidia-(?:driver-)?)(?=\d)", r"\1", text)
    if name == "tensorflow":
        return re.sub(r"^([<>=!~]*)(?:tf|tensorflow|v)[-_ ]?(?=\d)", r"\1", text, flags=re.IGNORECASE)
    if name == "java":
        return re.sub(r"^([<>=!~]*)1\.(?=\d)", r"\1", text)
    return text


def host_items(host: HostProfile | None) -> list[Item]:
    """The facts of a host that was read. Each item has one fact only, so that hosts with the same fact share results."""
    items: list[Item] = []

    def add(name: str, label: str, *levels: str, **fact: Any) -> None:
        items.append(Item("host", name, label, subject=HostProfile(**fact), host_fact=name, levels=levels))

    if host is None:
        return items
    if host.gpus == ():
        add("gpus", "the host, which has no GPU", "driver", "site", gpus=())
    if host.pythons is not None:
        versions = listed(newest(host.pythons)[::-1]) or "no Python"
        add("python", f"the host's Python ({versions})", "tensorflow", pythons=host.pythons)
    if host.glibc is not None:
        add("glibc", f"the host's glibc {host.glibc}", "tensorflow", glibc=host.glibc)
    if host.cpu_features is not None:
        add("cpu", "the host's CPU", "tensorflow", cpu_features=host.cpu_features)
    if host.javas:
        add("java", f"the host's Java {listed(host.javas)}", "spark", javas=host.javas)
    if host.spark:
        add("spark", f"the site's Spark {host.spark} (spark_home)", "spark", spark=host.spark)
    if host.driver and host.gpus != ():
        add("driver", f"the host's driver {host.driver}", "driver", driver=host.driver)
    if host.architecture not in (None, "x86_64"):
        add("architecture", f"the host's {host.architecture}", "tensorflow", architecture=host.architecture)
    return items


def arguments(request: Mapping[str, Any]) -> str:
    """A request as arguments of scripts/stack."""
    parts = [f"--os {quoted(str(request['os']))}"] if "os" in request else []
    parts += [f"--gpu {quoted(name)}" for name in texts("gpu", request.get("gpu", ())) if name]
    parts += [f"--hadoop {request['hadoop']}"] if "hadoop" in request else []
    return " ".join([*parts, *(quoted(f"{name}={value}") for name, value in request.items() if name not in OPTIONS)])


def quoted(text: str) -> str:
    return f"'{text}'" if re.search(r"[<>!|~ ]", text) else text
