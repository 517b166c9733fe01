"""The engine image of a stack for Cloudera Data Science Workbench: its Dockerfile and the files beside it, from the stack and its lock.

Pure functions; the filter engine_image_work of plugins/filter/cdsw.py hands the result to the role cdsw_engine.
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ansible.module_utils.hadoop_dl_host import source_wheels

from hadoop_dl.data import cdsw, programs, stacks
from hadoop_dl.data.compat import REPOSITORY
from hadoop_dl.data.locks import Entry, Lock, StackError, canonicalize_name
from hadoop_dl.data.stacks import Stack
from hadoop_dl.data.versions import numbers

ENVIRONMENT_ONLY = ("virtualenv",)  # makes environments on hosts
HOME = "/opt/deeplearning"  # of gpu-check and of what the image was made from
WHEELS = f"{HOME}/wheels"  # while they are installed
PIP = f"--no-deps --no-index --find-links {WHEELS} --only-binary :all: --require-hashes --no-cache-dir --disable-pip-version-check"
APT = f"apt-get -o Dir::Etc::SourceList={HOME}/engine/cuda.list -o Dir::Etc::SourceParts=/dev/null"
PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+=[\w.+:~-]+")
HTTP = re.compile(r"https?://[^\s/@?#]+(/[^\s@?#]*)?")  # without user, password and query
BASE = re.compile(r"[\w][\w./:@-]*")
PARTS = ("tensorflow", "keras", "tensorflow_io", "tensorflowonspark")  # of a stack, by the names of their modules


class EngineError(ValueError):
    """An image that cannot be built; the text has what is required, what was found, and what to do."""


@dataclass(frozen=True)
class Sections:
    """A lock for an engine, whose pip may be too old for the other wheels: the tools first."""

    tools: tuple[Entry, ...]
    rest: tuple[Entry, ...]

    @property
    def megabytes(self) -> int:
        return sum(entry.size for entry in (*self.tools, *self.rest)) // 1000000 + 1

    def requirements(self, address: str) -> dict[str, str]:
        """One wheel with its sha256 a line. pip needs no index, but --find-links for wheels that are made by recipe."""
        return {
            name: "".join(requirement(entry, address) for entry in entries)
            for name, entries in (("requirements-pip.txt", self.tools), ("requirements.txt", self.rest))
            if entries
        }

    @property
    def downloads(self) -> list[dict[str, Any]]:
        """The files that the build host fetches, as environment_packages.parse_section has them."""
        return [
            {
                "project": canonicalize_name(entry.project),
                "file": entry.name,
                "sha256": entry.sha256,
                "size": entry.size,
            }
            for entry in (*self.tools, *self.rest)
        ]


def requirement(entry: Entry, address: str) -> str:
    if source_wheels.is_wheel(entry.name):
        return f"{address}/{quote(entry.name)} --hash=sha256:{entry.sha256}\n"
    recipe = source_wheels.recipe_of(entry.name, entry.sha256)
    return f"{entry.project}=={entry.version} --hash=sha256:{recipe.sha256}\n"


def sections(lock: Lock) -> Sections:
    entries = [entry for entry in lock.entries if entry.project not in ENVIRONMENT_ONLY]
    return Sections(
        tuple(entry for entry in entries if entry.component == "pip"),
        tuple(entry for entry in entries if entry.component != "pip"),
    )


def work(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What the role builds and tests: Dockerfile, files (as base64), and the questions. `inputs` are those of the role, without their prefix."""
    try:
        stack = stacks.load_stack(inputs["stack"])
        python = inputs["python"] or stack.pythons[0]
        lock = stack.lock(python)
    except StackError as error:
        raise EngineError(f"cdsw_engine_stack cannot be used. {error}") from error
    check(inputs, stack, python, lock)
    parts, key = sections(lock), inputs.get("cuda_key", "")
    texts = parts.requirements(f"file://{WHEELS}")
    texts["stack.json"] = json.dumps({"stack": stack.name, "lock": lock.digest, "python": python}, indent=2) + "\n"
    settings = {"gpu_count": "", "driver": "", "driver_min": stack.version("driver_min") or "", "persistence": False}
    texts["gpu-check.json"] = json.dumps(settings, indent=2) + "\n"
    files = {name: text.encode() for name, text in texts.items()}
    if inputs["cuda_packages"]:
        files["cuda.list"] = "".join(f"deb {url} /\n" for url in inputs["cuda_repository"].split()).encode()
        files["cuda.gpg"] = keyring(key)
        files["cuda-libraries.conf"] = linker_text(stack).encode()
    files["gpu-check"] = programs.pack(REPOSITORY / "roles/gpu_check/files/gpu-check")
    files["Dockerfile"] = dockerfile(inputs, stack, lock, files).encode()
    return {
        "stack": stack.name,
        "python": python,
        "digest": digest({**files, "install": installation(python, parts).encode()}),
        "description": stack.data["description"],
        "install": installation(python, parts),
        "wheels": parts.downloads,
        "files": {name: base64.b64encode(content).decode() for name, content in files.items()},
        "megabytes": parts.megabytes,
        "glibc": stack.version("glibc_min") or "",
        "questions": questions(stack, lock),
    }


def check(inputs: Mapping[str, Any], stack: Stack, python: str, lock: Lock) -> None:
    """Refuse what cannot work before a host is read."""
    if not BASE.fullmatch(inputs["base"]):
        raise EngineError(
            "cdsw_engine_base must name Cloudera's engine image on the build host, such as docker.repository.cloudera.com/cdsw/engine:13, "
            f"but is {inputs['base']!r}."
        )
    if not HTTP.fullmatch(inputs["mirror_url"]):
        raise EngineError(
            "cdsw_engine_mirror_url must be the mirror's address, such as http://mirror01.example.com:8900, without user and password, but is not."
        )
    if unusable := cdsw.wheel_problem(stack, python):
        raise EngineError(unusable)
    if inputs["version"]:
        engines = {engine.engine: engine for engine in cdsw.engines()}
        problem = engines[inputs["version"]].problem(stack, python) if inputs["version"] in engines else ""
        if problem:
            fitting = ", ".join(fits(engines[inputs["version"]])) or "none"
            raise EngineError(f"{problem} Stacks for this engine: {fitting}.")
    if inputs["cuda_packages"]:
        wrong = [entry for entry in inputs["cuda_packages"] if not PACKAGE.fullmatch(entry)]
        if wrong:
            raise EngineError(
                f"cdsw_engine_cuda_packages must have entries such as cuda-libraries-10-0=10.0.130-1, but has {', '.join(wrong)}."
            )
        if (
            not re.fullmatch(r"https?://[^\s@]+( https?://[^\s@]+)*", inputs["cuda_repository"])
            or not inputs["cuda_key"]
        ):
            raise EngineError(
                "cdsw_engine_cuda_packages come from a repository that is signed: set cdsw_engine_cuda_repository (http://…) and cdsw_engine_cuda_key."
            )
        if stack.version("cuda") is None or lock.cuda:
            reason = "has CUDA among its packages" if lock.cuda else "uses no CUDA"
            raise EngineError(f"{stack.name} {reason}, but cdsw_engine_cuda_packages are named. Remove them.")


def fits(engine: cdsw.Engine) -> list[str]:
    """The stacks for this engine; none if no source names its Pythons."""
    if not engine.pythons:
        return []
    return [
        stack.name
        for stack in stacks.load_stacks()
        if any(not engine.problem(stack, python) for python in stack.pythons)
    ]


def installation(python: str, parts: Sections) -> str:
    """The command that installs the wheels, without a network; what it leaves is the image."""
    steps = [
        f"python{python} -m pip install {PIP} --requirement {HOME}/engine/{name}" for name in parts.requirements("")
    ]
    return " && ".join([*steps, f"rm -rf {WHEELS}"])


def dockerfile(inputs: Mapping[str, Any], stack: Stack, lock: Lock, files: Mapping[str, bytes]) -> str:
    """The image without the stack's packages."""
    python = f"python{inputs['python'] or stack.pythons[0]}"
    place = f"{HOME}/engine"
    lines = [f"# {stack.name}, lock {lock.digest}. Written by the role cdsw_engine.", f"FROM {inputs['base']}"]
    lines += [f'LABEL hadoop-deeplearning.stack="{stack.name}" hadoop-deeplearning.lock="{lock.digest}"']
    copied_files = [name for name in sorted(files) if not name.startswith("gpu-check")]
    lines += [f"COPY {' '.join(copied_files)} {place}/"]
    if inputs["cuda_packages"]:
        lines += [
            f"RUN cp {place}/cuda.gpg /etc/apt/trusted.gpg.d/deeplearning-cuda.gpg && {APT} update && "
            f"DEBIAN_FRONTEND=noninteractive {APT} install --yes --no-install-recommends {' '.join(inputs['cuda_packages'])} && "
            f"cp {place}/cuda-libraries.conf /etc/ld.so.conf.d/deeplearning-cuda.conf && ldconfig && rm -rf /var/lib/apt/lists/*"
        ]
    if stack.version("cuda"):
        # As Cloudera's Dockerfile has it: CDSW up to 1.5 puts the host's driver there.
        lines += ["ENV PATH=/usr/local/nvidia/bin:/usr/local/cuda/bin:${PATH}"]
        lines += ["ENV LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64"]
    lines += [f"COPY gpu-check {HOME}/bin/", f"COPY gpu-check.json {HOME}/etc/"]
    lines += [
        f"RUN mkdir -p {HOME}/current/bin && ln -s $(command -v {python}) {HOME}/current/bin/python && "
        f"ln -s {HOME}/bin/gpu-check /usr/local/bin/gpu-check"
    ]
    return "\n".join(lines) + "\n"


def linker_text(stack: Stack) -> str:
    home = f"/usr/local/cuda-{stack.version('cuda')}"
    return f"{home}/lib64\n{home}/targets/x86_64-linux/lib\n"


def questions(stack: Stack, lock: Lock) -> dict[str, Any]:
    """The values that files/engine_probe.py checks in the image."""
    projects = {entry.project: entry.version for entry in lock.entries if entry.project not in ENVIRONMENT_ONLY}
    imports = [name for name in PARTS if name in stack.data]
    return {
        "imports": imports,
        "projects": projects,
        "libraries": [] if lock.cuda else libraries(stack.version("cuda"), stack.version("cudnn")),
    }


def libraries(cuda: str | None, cudnn: str | None) -> list[str]:
    """The CUDA libraries that TensorFlow loads, by their file names."""
    if cuda is None:
        return []
    major, minor = numbers(cuda)[:2]
    runtime = f"{major}.0" if major == 11 else str(major) if major > 11 else cuda
    blas = cuda if (major, minor) < (10, 1) else str(major)
    names = [f"libcudart.so.{runtime}", f"libcublas.so.{blas}"]
    return [*names, f"libcudnn.so.{cudnn.partition('.')[0]}"] if cudnn else names


def keyring(armored: str) -> bytes:
    """A public key without its armour: apt before 1.4 (Ubuntu 16.04) reads no other."""
    match = re.search(r"-----BEGIN PGP PUBLIC KEY BLOCK-----\n(?:.*: .*\n)*\n?([^-]+?)(?:\n=\S{4})?\n-----END", armored)
    try:
        key = base64.b64decode("".join(match[1].split()), validate=True) if match else b""
    except binascii.Error:
        key = b""
    if not key:
        raise EngineError(
            "cdsw_engine_cuda_key must be an armoured public key (gpg --armor --export), but is not or is damaged."
        )
    return key


def digest(files: Mapping[str, bytes]) -> str:
    sha256 = hashlib.sha256()
    for name, content in sorted(files.items()):
        sha256.update(f"{name} {len(content)}\n".encode() + content)
    return sha256.hexdigest()


def registration(image: str, description: str) -> str:
    """What an administrator enters on CDSW's page, and then a project's owner; from 1.10 on the page has another name."""
    return (
        f'Admin > Engines (CDSW 1.10: Admin > Runtime/Engine) > Engine Images: Description "{description}", Repository:Tag "{image}", Add. '
        f'Then, in a project: Project Settings > Engine: "{description}".'
    )
