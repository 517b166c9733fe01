"""The plan: per host, what is there, what is requested, and what therefore must run. Pure functions over facts.

Input is what the host reader answered for every host and the inventory's raw variables; output is one list of all
problems, or a table and, per host, the stack and the components that need work. Nothing here talks to a host.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from hadoop_dl.data.stacks import Stack, UnknownStack, load_stacks
from hadoop_dl.plan import (
    builds,
    gpu_layer,
    gpu_packages,
    inputs,
    kerberos,
    mapr,
    requirements,
    target,
    workbench,
    yarn,
)
from hadoop_dl.plan.component import Case, Component, Run
from hadoop_dl.plan.components import BUILDING, COMPONENTS, concerns
from hadoop_dl.plan.model import Host, Plan
from hadoop_dl.plan.problems import (
    added_warnings,
    by_host,
    cluster_problems,
    cluster_warnings,
    group_alike,
    group_problems,
    host_problems,
    inventory_problems,
    listed_warnings,
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
    plan = Plan()
    target.verdicts.clear()
    read = usable_hosts(plan, hosts, repository)
    targets = resolved(read, settled(read))
    additional = {} if building else beside(read, targets)
    run = decide(read, targets, additional, Run(repository, driver_upgrade=driver_upgrade, building=building))
    cases = [Case(host, targets[host.name], run, additional.get(host.name, ())) for host in read]
    for case in cases:
        examine(plan, case)
    for name, sentence in yarn.drained(hosts):
        plan.tell(name, warnings=[sentence])
    plan.problems += [*cluster_problems(read, targets), *kerberos.clock_problems(read), *run.problems]
    plan.warnings += [] if building else [*run.workbench.warnings, *cluster_warnings(read, targets, additional)]
    for case in cases:
        add_host(plan, case)
    workbench.ask_master(plan, read, run.workbench)
    plan.problems_by_host, _ = by_host(plan.problems)
    if grouped:
        plan.problems, plan.warnings, plan.notes = map(group_alike, (plan.problems, plan.warnings, plan.notes))
    return plan


def usable_hosts(plan: Plan, hosts: Sequence[Host], repository: Path) -> list[Host]:
    """The hosts that answered and whose inputs can be used, with the inputs' values; what is wrong with the others is added to the plan."""
    answers = {host.name: inputs.check(host.variables, repository) for host in hosts}
    for host in hosts:
        answer = answers[host.name]
        plan.tell(host.name, answer.problems, [*answer.warnings, *listed_warnings(host)])
    hosts = [replace(host, variables={**host.variables, **answers[host.name].values}) for host in hosts]
    group_problems(plan, hosts)
    plan.problems += inventory_problems(hosts)
    without_answer(plan, [host for host in hosts if host.facts is None])
    return [host for host in hosts if host.facts is not None and not answers[host.name].problems]


def decide(
    hosts: Sequence[Host], targets: Mapping[str, Target], additional: Mapping[str, Sequence[Target]], run: Run
) -> Run:
    """The run with what is decided for all of its hosts together."""
    site = workbench.deployment(hosts, targets, additional)
    requested, problems = builds.requested(hosts, targets) if run.building else ([], site.problems)
    environments = sorted(
        {
            (item.lock.stack, item.python, item.environment)
            for item in chain(targets.values(), *additional.values())
            if item.lock
        }
        | {(build.stack.name, build.python, "") for build in requested if build.stack.record(build.python) is None}
    )
    pairs, unknown = engines(hosts)
    environments += [(*pair, "") for pair in pairs if pair not in {environment[:2] for environment in environments}]
    return replace(
        run,
        environments=environments,
        builds={build.builder: build for build in requested},
        workbench=site,
        kept=installed_environments(hosts),
        problems=problems + unknown,
    )


def examine(plan: Plan, case: Case) -> None:
    """Add why the host's request cannot be met."""
    host, host_target = case.host, case.wanted
    uses_hadoop = host_target.stack is None or host_target.stack.uses_hadoop
    plan.tell(host.name, [*host_target.problems, *host_problems(host, [host_target, *case.additional])])
    plan.tell(host.name, requirements.problems(host, case.run.repository, uses_hadoop))
    if uses_hadoop and concerns("hadoop_client", host):
        plan.tell(host.name, kerberos.problems(host))
    plan.tell(host.name, mapr.problems(host))
    for component in COMPONENTS.values():
        if component.concerns(host):
            component.examine(plan, case)
    plan.tell(host.name, warnings=added_warnings(host))


def without_answer(plan: Plan, hosts: Sequence[Host]) -> None:
    """Hosts that cannot be reached, and those whose answer has no sense, are left out; each of the latter is named with its reason."""
    plan.unreachable = [host.name for host in hosts]
    plan.warnings += [f"{host.name}: {host.problem} It is left out." for host in hosts if host.problem]
    silent = ", ".join(host.name for host in hosts if not host.problem)
    if any(host.variables.get("deeplearning_unreachable", "continue") == "stop" for host in hosts):
        plan.problems.append(
            f"{', '.join(plan.unreachable)} cannot be reached or read, but deeplearning_unreachable is 'stop'. "
            "Repair them, exclude them with --limit, or set deeplearning_unreachable: continue."
        )
    elif silent:
        plan.warnings.append(f"{silent}: unreachable and skipped. The other hosts continue.")


def engines(hosts: Sequence[Host]) -> tuple[list[tuple[str, str]], list[str]]:
    """Stack and Python of the engine images that hosts build, which the mirror holds too; and why one is unknown."""
    pairs, problems = set(), []
    for host in hosts:
        try:
            if engine := workbench.engine_environment(host, host.variables):
                pairs.add((engine[0].name, engine[1]))
        except UnknownStack as error:
            problems.append(f"{host.name}: cdsw_engine_stack cannot be used. {error}")
    return sorted(pairs), problems


def installed_environments(hosts: Sequence[Host]) -> list[list[str]]:
    """Known stacks, with each of their Pythons, of which any host has an environment: a repair of it needs the mirror."""
    names = {name.rpartition("-")[0] for host in hosts for name in host.known.deeplearning.environments}
    return [[form.name, python] for stack in load_stacks(names) for form in stack.forms for python in form.pythons]


def resolved(hosts: Sequence[Host], names: Mapping[str, str]) -> dict[str, Target]:
    """The target of each host."""
    return {
        host.name: target.target_for(host.variables, host.known, host.groups, names.get(host.name, ""))
        for host in hosts
    }


def beside(hosts: Sequence[Host], targets: Mapping[str, Target]) -> dict[str, tuple[Target, ...]]:
    """The environments that each host gets beside the active one."""
    lists = {host.name: host.variables.get("deeplearning_additional_stacks") or [] for host in hosts}
    targets_by_host: dict[str, list[Target]] = {host.name: [] for host in hosts}
    for name in sorted({name for names in lists.values() for name in names}):
        asking = [
            replace(host, variables={"deeplearning_request": name})  # extra packages are those of the active one
            for host in hosts
            if name in lists[host.name]
        ]
        for host, host_target in resolved(asking, {}).items():
            if host_target.problems or host_target.environment != targets[host].environment:
                targets_by_host[host].append(host_target)
    return {name: tuple(host_targets) for name, host_targets in targets_by_host.items()}


def settled(hosts: Sequence[Host]) -> dict[str, str]:
    """For hosts with the same constraints, the one named stack that fits all of them, by host; absent if none does."""
    alike: dict[str, list[Host]] = {}
    for host in hosts:
        if isinstance(host.variables.get("deeplearning_request"), Mapping) and concerns("environment", host):
            alike.setdefault(json.dumps(host.variables["deeplearning_request"], sort_keys=True), []).append(host)
    names_by_host: dict[str, str] = {}
    for group in alike.values():
        profiles = dict.fromkeys(host.known.profile for host in group)
        names, _ = target.stacks_for(group[0].variables["deeplearning_request"], profiles)
        names_by_host.update({host.name: names[0] for host in group if names})
    return names_by_host


def add_host(plan: Plan, case: Case) -> None:
    """Add one host's entry and its rows."""
    host, host_target = case.host, case.wanted
    names = BUILDING if case.run.building else tuple(COMPONENTS)
    components = [COMPONENTS[name] for name in names if COMPONENTS[name].concerns(host)]
    for component in components:
        if component.has_work(case):
            add_row(plan, case, component)
    case.part = plan.hosts[host.name] = {
        **host_target.part,
        "additional": [],
        "mirror_environments": [],
        "digests": case.digests,
        "needs": case.needs,
        "gpu": {},
        "build": {},
    }
    for component in components:
        component.publish(plan, case)
    if concerns("nvidia_driver", host) and not case.run.building:
        gpu_packages.add(plan, case)
    stack = case.wanted.stack
    if stack and uses_login(case, stack):
        case.needs += [kerberos.LOGIN] if kerberos.logs_in(host) else []
        plan.tell(host.name, warnings=kerberos.warnings(host, stack))
    warnings = gpu_layer.of_its_driver(host_target.warnings, host)
    plan.tell(host.name, **{"warnings" if case.needs else "notes": warnings})


def uses_login(case: Case, stack: Stack) -> bool:
    """Whether a step of the run on this host concerns HDFS or YARN."""
    steps = {"environment", "hadoop_client", "tensorflowonspark", "verify"} & set(case.needs)
    return bool(steps) and stack.uses_hadoop and kerberos.is_secure(case.host)


def add_row(plan: Plan, case: Case, component: Component) -> None:
    """Compare a component with what the host has of it."""
    row, follows = component.compare(case), component.follows(case.needs)
    if row is None and case.host.variables.get("apply") == "all":
        row = case.row(component.name, "as requested", "as requested", "apply=all")
    if row or follows:
        case.needs += [name for name in (*component.layer, component.name) if name not in case.needs]
    plan.rows += [row] if row and not follows else []
