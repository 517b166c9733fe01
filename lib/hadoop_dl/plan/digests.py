"""Digests: 12 hex digits that change whenever something that decides a component's result changes."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hadoop_dl.data import programs
from hadoop_dl.data.json_text import encoded
from hadoop_dl.plan import inputs
from hadoop_dl.plan.model import Json

# Inputs that decide whether a role runs, not what it installs.
PERMISSION = re.compile(r"_(license_accepted|upgrade_allowed|restart_allowed|reload_allowed)$|_reboot_|^mirror_bundle")
# What roles do is also decided by an internal role and by the code of its filters.
CUDA_SHARED = ("roles/_cuda_package", "lib/hadoop_dl/data/cuda_packages.py", "plugins/filter/cuda_packages.py")
SHARED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("cuda", "cudnn", "nccl"), CUDA_SHARED),
    "nvidia_driver": (
        *(f"lib/hadoop_dl/data/driver_{name}.py" for name in ("packages", "problems", "state", "work")),
        "plugins/filter/nvidia_driver.py",
    ),
    "yarn_gpu": (
        "lib/hadoop_dl/data/yarn_work.py",
        "plugins/filter/yarn_gpu.py",
        "plugins/module_utils/hadoop_dl_host/gpu_health.py",
    ),
}
MAGIC = re.compile(
    r"^(ansible_|group_names$|groups$|hostvars$|inventory_|omit$|play|role_|environment$|vars$|plan$|apply$|node$|stack$)"
)


def closure(names: Iterable[str], variables: Mapping[str, Any]) -> Json:
    """The raw values of these variables and of every variable whose name their templates mention."""
    values: Json = {}
    queue = list(names)
    while queue:
        name = queue.pop()
        if name in values or name not in variables or MAGIC.match(name):
            continue
        values[name] = variables[name]
        value = variables[name]
        text = value if isinstance(value, str) else encoded(value)
        if "{{" in text or "{%" in text:
            queue += re.findall(r"[A-Za-z_]\w*", text)
    return values


def canonical(value: Any) -> str:
    """A value as sorted JSON."""
    return encoded(value, sort_keys=True)


def joined(texts: Mapping[str, str]) -> str:
    """The canonical text of a mapping from the canonical texts of its values: a long one that hosts share is written once."""
    return "{" + ", ".join(f"{json.dumps(name)}: {texts[name]}" for name in sorted(texts)) + "}"


@cache
def deciding_inputs(repository: Path, roles: tuple[str, ...]) -> tuple[str, ...]:
    """The inputs that decide what these roles do."""
    return tuple(
        name for role in roles for name in sorted(inputs.role_options(repository, role)) if not PERMISSION.search(name)
    )


@cache
def role_digests(repository: Path, roles: tuple[str, ...]) -> str:
    """The digests of these roles and of what they share, as JSON."""
    shared = dict.fromkeys(path for role in roles for path in SHARED.get(role, ()))
    own = [role_digest(repository / "roles" / role) for role in roles]
    return canonical(own + [tree_digest(repository / path) for path in shared])


def role_digest(directory: Path) -> str:
    """A digest of a role's files and of its programs as hosts get them: those are packed with files of other directories."""
    own = tree_digest(directory)
    packed = [hashlib.sha256(programs.pack(program)).hexdigest() for program in programs.directories(directory)]
    return hashlib.sha256(canonical([own, *packed]).encode()).hexdigest() if packed else own


@cache
def tree_digest(directory: Path) -> str:
    """A digest of a role's files, or of one file, by path and content; documentation and tests do not count."""
    digest = hashlib.sha256()
    for path in sorted(path for path in (directory, *directory.rglob("*")) if path.is_file()):
        relative = path.relative_to(directory)
        if path.suffix not in (".md", ".pyc") and "__pycache__" not in relative.parts:
            digest.update(f"{relative}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
