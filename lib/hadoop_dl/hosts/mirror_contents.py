"""The contents of an inventory's mirror, as far as the inventory alone decides it: no host is read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hadoop_dl.data import extras, stacks
from hadoop_dl.data.compat import load
from hadoop_dl.hosts import gpu_sets
from hadoop_dl.plan import forms, inputs, target
from hadoop_dl.plan.components import concerns
from hadoop_dl.plan.model import Host, shorten
from hadoop_dl.plan.problems import group_alike
from hadoop_dl.plan.requirements import places
from hadoop_dl.plan.workbench import engine_environment
from hadoop_dl.resolver import Misuse, named_stacks
from hadoop_dl.resolver.request import read_request

Json = dict[str, Any]
DECIDING = (
    *target.INPUTS,
    "deeplearning_additional_stacks",
    "mirror_files",
    "mirror_gpu_repositories",
    "mirror_gpu_key",
    "mirror_bundle_key",
    "mirror_url",
    "cdsw_engine_stack",
    "cdsw_engine_python",
    "cdsw_engine_state",
)


@dataclass
class Contents:
    """environments: stack and Python, with the groups that ask for them. uses: artifacts of the mirror that inputs name.

    hosts: of each system that the plan has packages for. bundle_key: the text of mirror_bundle_key, if there is one.
    """

    environments: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    files: dict[str, Json] = field(default_factory=dict)
    uses: list[tuple[Json, str]] = field(default_factory=list)
    sets: list[Json] = field(default_factory=list)
    hosts: dict[str, list[str]] = field(default_factory=dict)
    bundle_key: str = ""
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def as_json(self) -> Json:
        pairs = [[name, python, users] for (name, python), users in self.environments.items()]
        return {**vars(self), "environments": pairs}

    def ask(self, stack: str, pythons: Iterable[str], users: Iterable[str]) -> None:
        for python in pythons:
            stack_users = self.environments.setdefault((stack, python), [])
            stack_users += [user for user in users if user not in stack_users]


def contents(
    hosts: Sequence[Host],
    stack_names: Sequence[str],
    repository: Path,
    plan: Path | None = None,
) -> Contents:
    """What these hosts' inventory asks for. stack_names: stacks that the operator named, which also decide between those that fit constraints.

    plan: a file with a plan, which decides the GPU layer.
    """
    contents, problems = Contents(), []
    mirror_values: Json = {}
    for host in hosts:
        names = [*DECIDING, *archive_inputs(repository)]
        site_values = {name: host.variables[name] for name in names if name in host.variables}
        checked = inputs.check(site_values, repository)
        values = checked.values
        problems += [f"{host.name}: {problem}" for problem in checked.problems]
        try:
            for stack, pythons in requested(host, values, stack_names) if not checked.problems else ():
                groups = [group for group in target.ENVIRONMENT_GROUPS if group in host.groups]
                for form in stack.forms:
                    contents.ask(form.name, pythons, groups)
            if engine := engine_environment(host, values):
                contents.ask(engine[0].name, [engine[1]], ["cdsw_engine_stack"])
        except (stacks.UnknownStack, extras.ExtrasError, Misuse) as error:
            problems.append(f"{host.name}: {error}")
        contents.uses += [use for use in uses(values, repository) if use not in contents.uses]
        if concerns("mirror", host):
            mirror_values |= values
            contents.files |= values.get("mirror_files", {})
    contents.problems = group_alike(problems)
    if not contents.problems:
        contents.bundle_key = key_text(mirror_values.get("mirror_bundle_key", ""), repository)
        if plan:
            gpu_key = key_text(mirror_values.get("mirror_gpu_key", ""), repository)
            add_gpu_layer(contents, plan, [host.name for host in hosts], mirror_values, gpu_key)
    return contents


def key_text(name: str, repository: Path) -> str:
    """The text of a file on the controller; empty if there is none."""
    for path in places(name, repository) if name else ():
        if path.is_file():
            return path.read_text(encoding="utf-8").rstrip()
    return ""


def add_gpu_layer(contents: Contents, plan: Path, hosts: Iterable[str], values: Mapping[str, Any], key: str) -> None:
    """The sets of the GPU layer. values: the inputs of the mirror's host. key: the text of those that sign the packages."""
    try:
        systems, unread = gpu_sets.read(plan, hosts)
        contents.sets = gpu_sets.sets(systems, values, key)
    except gpu_sets.PlanError as error:
        contents.problems.append(str(error))
        return
    contents.hosts = {system: entry["hosts"] for system, entry in systems.items()}
    if unread:
        contents.warnings.append(
            f"The plan does not have {shorten(unread)}, so that packages which they alone need may be missing."
        )


def requested(
    host: Host, values: Mapping[str, Any], stack_names: Sequence[str]
) -> list[tuple[stacks.Stack, Sequence[str]]]:
    """The stack of a host that runs jobs or sessions, and its Pythons; of constraints, those of the chosen ones that meet them."""
    if not set(target.ENVIRONMENT_GROUPS) & set(host.groups):
        return []
    request, packages = values.get("deeplearning_request"), values.get("deeplearning_extra_packages")
    if not request:
        raise Misuse(target.unset_sentence())
    beside = [stacks.load_stack(name) for name in values.get("deeplearning_additional_stacks", ())]
    additional: list[tuple[stacks.Stack, Sequence[str]]] = [(stack, stack.pythons) for stack in beside]
    if isinstance(request, str):
        stack = stacks.load_stack(extras.requested_name(request, packages))
        return [(stack, stack.pythons), *additional]
    fitting = sorted(candidate.name for candidate in named_stacks.candidates(load(), request, None))
    names = [name for name in fitting if name in stack_names] or fitting
    if not names:
        raise Misuse(
            f"deeplearning_request must be met by a named stack, but {forms.shown(request)} is met by none. Ask why: scripts/stack resolve"
        )
    if len(names) > 1 and names == fitting:
        raise Misuse(
            f"deeplearning_request {forms.shown(request)} is met by {', '.join(fitting)}, and which one the hosts get depends on their system and GPUs. "
            "Name it on the command line; playbooks/plan.yml shows it for hosts that can be reached."
        )
    loaded = [stacks.load_stack(extras.requested_name(name, packages)) for name in names]
    constraints = read_request(load(), request)
    return [*((stack, named_stacks.pythons_for(stack, constraints)) for stack in loaded), *additional]


def archive_inputs(repository: Path) -> list[str]:
    """The inputs that are mappings of {file, sha256}, beside what the mirror fetches."""
    all_inputs = inputs.all_inputs(repository).values()
    return [
        entry.name for entry in all_inputs if entry.limits.get("values") == "archive" and entry.name != "mirror_files"
    ] + ["tensorflow_build_source"]


def uses(values: Mapping[str, Any], repository: Path) -> list[tuple[Json, str]]:
    """Files that inputs take from files/ of this mirror, as artifacts; only mirror_files, or a stack, knows where they come from."""
    address = f"{values.get('mirror_url', '').rstrip('/')}/files/"
    pairs = []
    for name in archive_inputs(repository):
        entries = [values.get(name, {})] if name == "tensorflow_build_source" else values.get(name, {}).values()
        for entry in entries:
            file = str(entry.get("file", ""))
            if file.startswith(address) and "/" not in file[len(address) :] and "sha256" in entry:
                pairs.append(({"folder": "files", "name": file[len(address) :], "sha256": entry["sha256"]}, name))
    return pairs
