"""The sets of packages of the GPU layer, of what a plan says about hosts (lib/hadoop_dl/plan/gpu_packages.py); no host is read."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hadoop_dl.plan import forms
from hadoop_dl.plan.model import shorten

Json = dict[str, Any]
PREFIX = "gpu-"  # of a set's name
PACKAGE = re.compile(r"[A-Za-z0-9][\w.+~^-]{0,149}(\|[A-Za-z0-9][\w.+~^-]{0,149})?", re.ASCII)
WRITE = "Write it where the hosts can be reached: ansible-playbook -i INVENTORY playbooks/plan.yml -e preflight_plan_file=plan.json"


class PlanError(ValueError):
    """A file that is no plan of this inventory."""


def read(path: Path, inventory_hosts: Iterable[str]) -> tuple[dict[str, Json], list[str]]:
    """Of the plan in a file: packages and hosts of each system, and hosts that were not read.

    PlanError if it has another form, problems, or another inventory's hosts.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        systems = {
            str(system): {"packages": [*map(checked, entry["packages"])], "hosts": [*map(str, entry["hosts"])]}
            for system, entry in content["gpu_packages"].items()
        }
        names, problems = {str(name) for name in content["hosts"]}, content["problems"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PlanError(
            f"--plan must name a plan's file of this release, but {path} is none ({error}). {WRITE}"
        ) from None
    known = set(inventory_hosts)
    if others := sorted(names - known):
        raise PlanError(
            f"--plan must be of this inventory, but {path} has {shorten(others)}, which the inventory does not have. {WRITE}"
        )
    if problems:
        raise PlanError(
            f"A plan without problems is required, but {path} has {len(problems)}: {problems[0]} Solve them. {WRITE}"
        )
    return systems, sorted(known - names)


def checked(spec: Any) -> str:
    if not isinstance(spec, str) or not PACKAGE.fullmatch(spec):
        raise ValueError(f"the package {spec!r}")
    return spec


def sets(systems: Mapping[str, Json], values: Mapping[str, Any], key_text: str) -> list[Json]:
    """A set for each system as the module mirror_packages takes it; PlanError if one cannot be made. values: the inputs of the mirror's host."""
    repositories = forms.table()["site"]["mirror_gpu_repositories"]["default"] | values.get(
        "mirror_gpu_repositories", {}
    )
    for system in sorted(set(systems) - set(repositories)):
        raise PlanError(
            f"{shorten(systems[system]['hosts'])}: packages of the GPU layer are known for {', '.join(sorted(repositories))}, but the plan has {system}. "
            "Install the driver there by its own means, and set nvidia_driver_version: none (and cuda_versions, cudnn_versions, nccl_versions)."
        )
    if systems and not key_text:
        key, urls = values.get("mirror_gpu_key"), {url for system in systems for url in repositories[system].split()}
        raise PlanError(
            "mirror_gpu_key must be a file on the controller with the public keys that sign the packages of "
            f"{', '.join(sorted(urls))}, but {f'there is no {key}' if key else 'it is not set'}. Put their keys into one file and name it."
        )
    return [
        {
            "name": PREFIX + system,
            "packages": entry["packages"],
            "repositories": repositories[system].split(),
            "key": key_text,
            "users": f"the plan of {shorten(entry['hosts'])}",
        }
        for system, entry in systems.items()
    ]
