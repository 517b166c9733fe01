"""The plan: per host, what is there, what is requested, and what therefore must run. Pure functions over facts.

Input is what the host reader answered for every host and the inventory's raw variables; output is one list of all
problems, or a table and, per host, the stack and the components that need work. Nothing here talks to a host.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hadoop_dl.data.stacks import UnknownStack
from hadoop_dl.plan import builds, gpu_layer, gpu_stack, inputs, target, workbench
from hadoop_dl.plan.components import BUILDING, COMPONENTS, Case, concerns
from hadoop_dl.plan.digests import canonical
from hadoop_dl.plan.gpu_stack import GpuHost
from hadoop_dl.plan.model import Host, Json, Plan
from hadoop_dl.plan.problems import (
    added_warnings,
    cluster_problems,
    group_alike,
    group_problems,
    host_problems,
)
from hadoop_dl.plan.target import Target


def make_plan(
    hosts: Sequence[Host],
    repository: Path,
    driver_upgrade: bool = False,
    grouped: bool = True,
    building: bool = False,
) -> Plan:
    """Resolve every host's request against what it answered, and compare with what it has.

    driver_upgrade: another version of the driver may take the installed one's place in this run.
    grouped: problems and warnings that several hosts share are one line each.
    building: only what builds TensorFlow, for stacks whose wheel the site builds.
    """
    made = Plan()
    checked = {host.name: inputs.check(host.variables, repository) for host in hosts}
    for host in hosts:
        made.problems += [f"{host.name}: {problem}" for problem in checked[host.name].problems]
        made.warnings += [f"{host.name}: {warning}" for warning in checked[host.name].warnings]
    hosts = [replace(host, variables={**host.variables, **checked[host.name].values}) for host in hosts]
    group_problems(made, hosts)
    stopped = False
    for host in hosts:
        if host.problem:
            made.problems.append(f"{host.name}: {host.problem}")
        elif host.facts is None:
            made.unreachable.append(host.name)
            stopped = stopped or host.variables.get("deeplearning_unreachable", "continue") == "stop"
    if stopped:
        made.problems.append(
            f"{', '.join(made.unreachable)} cannot be reached, but deeplearning_unreachable is 'stop'. "
            "Repair them, exclude them with --limit, or set deeplearning_unreachable: continue."
        )
    elif made.unreachable:
        made.warnings.append(
            f"{', '.join(made.unreachable)} cannot be reached and is skipped; the other hosts are served."
        )
    read = [host for host in hosts if host.facts is not None and not checked[host.name].problems]
    wanted = resolved(read, settled(read))
    for host in read:
        made.problems += [f"{host.name}: {problem}" for problem in wanted[host.name].problems]
        made.problems += [f"{host.name}: {problem}" for problem in host_problems(host, wanted[host.name])]
        if concerns("nvidia_driver", host):
            gpu = GpuHost(host, wanted[host.name])
            made.problems += [f"{host.name}: {problem}" for problem in gpu_layer.running_problems(gpu)]
            made.problems += [f"{host.name}: {problem}" for problem in gpu_stack.contradictions(gpu)]
            made.warnings += [f"{host.name}: {warning}" for warning in gpu_stack.warnings(gpu)]
        made.warnings += [f"{host.name}: {warning}" for warning in wanted[host.name].warnings]
        made.warnings += [f"{host.name}: {warning}" for warning in added_warnings(host)]
        if not building:
            made.problems += [f"{host.name}: {problem}" for problem in wheel_problems(host, wanted[host.name])]
    made.problems += cluster_problems(read, wanted)
    site = workbench.deployment(read, wanted)
    if not building:
        made.problems += site.problems
        made.warnings += site.warnings
    requested, problems = builds.requested(read, wanted) if building else ([], [])
    made.problems += problems
    environments = sorted(
        {(item.lock.stack, item.python, item.environment) for item in wanted.values() if item.lock}
        | {(one.stack.name, one.python, "") for one in requested if one.stack.record(one.python) is None}
    )
    environments += [(*pair, "") for pair in engines(made, read) if pair not in {one[:2] for one in environments}]
    by_host = {one.builder: one for one in requested}
    for host in read:
        case = Case(host, wanted[host.name], environments, repository, by_host.get(host.name), site)
        add_host(made, case, driver_upgrade, BUILDING if building else tuple(COMPONENTS))
    target.keep_verdicts()
    if grouped:
        made.problems, made.warnings = group_alike(made.problems), group_alike(made.warnings)
    return made


def engines(made: Plan, hosts: Sequence[Host]) -> list[tuple[str, str]]:
    """Stack and Python of the engine images that hosts build, which the mirror holds too."""
    found = set()
    for host in hosts:
        try:
            found.add(workbench.engine_environment(host, host.variables))
        except UnknownStack as error:
            made.problems.append(f"{host.name}: {error}")
    return sorted(pair for pair in found if pair)


def resolved(hosts: Sequence[Host], names: Mapping[str, str]) -> dict[str, Target]:
    """What each host gets. Hosts with the same request and the same deciding facts share one Target."""
    known: dict[Hashable, Target] = {}
    found = {}
    for host in hosts:
        asked = {name: host.variables.get(name) for name in target.INPUTS}
        facts = host.known
        groups = tuple(group for group in host.groups if group in target.ENVIRONMENT_GROUPS)
        name = names.get(host.name, "")
        key = (facts.profile, facts.os, tuple(facts.pythons.items()), canonical(asked), groups, name)
        if key not in known:
            known[key] = target.target_for(asked, facts, groups, name)
        found[host.name] = known[key]
    return found


def settled(hosts: Sequence[Host]) -> dict[str, str]:
    """For hosts with the same constraints, the one named stack that fits all of them, by host; absent where none does."""
    alike: dict[str, list[Host]] = {}
    for host in hosts:
        if isinstance(host.variables.get("deeplearning_request"), Mapping) and concerns("environment", host):
            alike.setdefault(json.dumps(host.variables["deeplearning_request"], sort_keys=True), []).append(host)
    found: dict[str, str] = {}
    for group in alike.values():
        profiles = dict.fromkeys(host.known.profile for host in group)
        names, _ = target.stacks_for(group[0].variables["deeplearning_request"], profiles)
        found.update({host.name: names[0] for host in group if names})
    return found


def wheel_problems(host: Host, wanted: Target) -> list[str]:
    """Why the wheel that the site builds cannot be installed on this host."""
    if wanted.stack is None or not wanted.stack.is_built or wanted.problems:
        return []
    if wanted.record is None:
        return [builds.missing_sentence(wanted.stack)]
    return builds.fit_problems(wanted.record, host.known)


def add_host(made: Plan, case: Case, driver_upgrade: bool, components: Sequence[str]) -> None:
    """Add one host's entry and its rows."""
    host, wanted = case.host, case.wanted
    everything = host.variables.get("apply") == "all"
    needs: list[str] = []
    for component in (COMPONENTS[name] for name in components):
        if not component.concerns(host) or not component.has_work(case):
            continue
        row = component.compare(case)
        if row is None and everything:
            row = case.row(component.name, "as requested", "as requested", "apply=all")
        if component.follows(needs):
            needs.append(component.name)
        elif row is not None:
            made.rows.append(row)
            needs.append(component.name)
    gpu = [need for need in needs if need in gpu_stack.ROLES]
    if gpu:
        add_gpu(made, case, gpu, driver_upgrade)
    if gpu or "gpu_check" in needs:
        needs.insert(needs.index((gpu or ["gpu_check"])[0]), "gpu")
    made.hosts[host.name] = {
        "stack": wanted.published,
        "python": wanted.python,
        "interpreter": wanted.interpreter,
        "environment": wanted.environment,
        "mirror_environments": [[stack, python] for stack, python, _ in case.environments]
        if concerns("mirror", host)
        else [],
        "digests": case.digests,
        "needs": needs,
        "parts": list(wanted.parts),
        "gpu": gpu_part(case, gpu),
        "build": case.build.part if case.build else {},
    }
    if "cdsw" in needs:
        made.hosts[host.name]["cdsw"] = workbench.part(host, case.workbench)
    if "container_runtime" in needs:
        made.hosts[host.name]["container_runtime"] = workbench.runtime_part(host, case.workbench)
    add_workbench(made, case, needs)


def gpu_part(case: Case, roles: Sequence[str]) -> Json:
    """The inputs of the GPU layer's roles that run on the host (playbooks/layers/gpu.yml hands them over)."""
    found: Json = {gpu_stack.variable(role): case.gpu[role] for role in roles if role != "nvidia_driver"}
    if "nvidia_driver" in roles:
        leaving = gpu_stack.there("nvidia_driver", case.facts)  # the role removes by the version's names
        found["nvidia_driver_version"] = next(iter([*case.versions("nvidia_driver"), *leaving]), "")
        found |= gpu_layer.limits(case.facts)
    if "gpu_check" in case.digests and case.versions("nvidia_driver"):
        found["gpu_check_driver_version"] = case.versions("nvidia_driver")[0]
    return found


def add_gpu(made: Plan, case: Case, roles: Sequence[str], driver_upgrade: bool) -> None:
    """Problems of the host's GPU layer, and warnings about what it changes there."""
    name, facts, variables = case.host.name, case.facts, case.host.variables
    asked = {role: case.versions(role) for role in roles}
    coming = {role: versions for role, versions in asked.items() if versions}
    problems = gpu_layer.license_problem(coming, variables)
    if coming.get("nvidia_driver"):
        version = coming["nvidia_driver"][0]
        problems += gpu_layer.driver_problems(version, GpuHost(case.host, case.wanted), driver_upgrade)
        made.warnings += [f"{name}: {text}" for text in gpu_layer.kernel_warnings(version, facts, variables)]
    made.problems += [f"{name}: {problem}" for problem in problems]
    reboot = gpu_layer.reboot(name, asked["nvidia_driver"], facts, variables) if "nvidia_driver" in roles else None
    made.reboots += [reboot] if reboot else []


def add_workbench(made: Plan, case: Case, needs: Sequence[str]) -> None:
    """Problems of the host's container runtime, and the restart of CDSW that its settings require."""
    host, site = case.host, case.workbench
    if "container_runtime" in needs:
        made.problems += [f"{host.name}: {problem}" for problem in workbench.runtime_problems(host, site)]
    restart = workbench.restart(host, site) if "cdsw" in needs else ""
    if restart and host.variables.get("cdsw_restart_allowed") is True:
        made.restarts.append(restart)
    elif restart:
        made.warnings.append(
            f"{host.name}: GPUs in sessions need another cdsw.conf and a restart of CDSW ({restart.partition(': ')[2].rstrip(')')}), but "
            "cdsw_restart_allowed is false. cdsw.conf stays as it is. Set cdsw_restart_allowed: true in a window for it."
        )
