"""Problems that prevent a plan, of one host and of several hosts together, and how they are listed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from urllib.parse import urlsplit

from hadoop_dl.data.host_facts import Nvidia
from hadoop_dl.plan import gpu_layer
from hadoop_dl.plan.components import GROUPS, concerns
from hadoop_dl.plan.model import Host, Plan, shorten
from hadoop_dl.plan.target import Target, stacks_for

DISK_NEEDED_MB = 5000  # an environment of TensorFlow 2.15 takes 2.6 GB, and the old one stays beside it
TFOS_GROUPS = ("data_nodes", "edge_nodes")  # one job's driver and executors: they need one environment


def group_problems(plan: Plan, hosts: Sequence[Host]) -> None:
    """A problem that names the hosts in none of this project's groups: they get nothing. A group that is nearly one of them is a mistake."""
    strangers = [host.name for host in hosts if not set(host.groups) & set(GROUPS)]
    for host in (host for host in hosts if host.name in strangers and len(strangers) < len(hosts)):
        near = [(group, match) for group in host.groups for match in get_close_matches(group, GROUPS, n=1, cutoff=0.85)]
        plan.problems += [
            f"{host.name}: it must be in one of the groups {', '.join(GROUPS)}, but is in {group}. Rename that group to {match}, or give it a name that is "
            "not nearly the same."
            for group, match in near[:1]
        ]
    if strangers and len(strangers) == len(hosts):
        plan.problems.append(
            f"At least one host must be in one of the groups {', '.join(GROUPS)}, but {shorten(strangers)} "
            f"{'is' if len(strangers) == 1 else 'are'} in none. Correct the groups' names in the inventory."
        )
    else:
        text = f"in none of the groups {', '.join(GROUPS)}, so nothing is installed there."
        plan.warnings += [f"{host.name}: {text}" for host in hosts if host.name in strangers]


def inventory_problems(hosts: Sequence[Host]) -> list[str]:
    """One machine under two names would be two hosts of a batch; one number of a run that differs between hosts would be the first host's."""
    names: dict[tuple[str, str], list[str]] = {}
    for host in hosts:
        values = [
            str(host.variables.get(key, default))
            for key, default in (("ansible_host", host.name), ("ansible_port", 22))
        ]
        names.setdefault((values[0], values[1]), []).append(host.name)
    problems = [
        f"Each machine must have one name in the inventory, but {' and '.join(twins)} have the same address ({address}). Remove all names but one."
        for (address, _), twins in names.items()
        if len(twins) > 1 and not any("{{" in part for part in (address, _))
    ]
    batches = {str(host.variables["upgrade_batch"]) for host in hosts if "upgrade_batch" in host.variables}
    if len(batches) > 1:
        problems.append(
            f"upgrade_batch must be the same for all hosts, but is {' and '.join(sorted(batches))}. Set it once, for the group all."
        )
    return problems + mirror_elsewhere(hosts)


def mirror_elsewhere(hosts: Sequence[Host]) -> list[str]:
    """One host would be filled, and another one asked. The name service may have more names of the mirror than the inventory."""
    owners = {name: host for host in hosts for name in (host.name, str(host.variables.get("ansible_host", host.name)))}
    problems = []
    for host in hosts:
        url = str(host.variables.get("mirror_url", ""))
        own = host.variables.get("mirror_mode") != "external" and host.variables.get("mirror_server") != "none"
        other = owners.get(urlsplit(url).hostname or "") if own and "mirror_host" in host.groups else None
        if other and "mirror_host" not in other.groups:
            problems.append(
                f"mirror_url must be the address of a host in the group mirror_host, but {url} is that of {other.name}. "
                "Correct the address or the group."
            )
    return problems


def mirror_problems(hosts: Sequence[Host], mirrors: Sequence[str]) -> list[str]:
    """The hosts whose environment comes from a mirror that no host fills. mirrors: all mirror hosts of the inventory, also of those not in this run."""
    concerned = [host for host in hosts if concerns("environment", host) and not mirrors]
    return [
        f"{host.name}: its environment comes from the mirror, but no host is in the group mirror_host. Add the mirror's host to that group, or set "
        "mirror_mode: external if it is not managed by this project."
        for host in concerned
        if host.variables.get("mirror_mode") != "external"
    ]


def group_alike(problems: Iterable[str]) -> list[str]:
    """List a sentence that several hosts share once, with all their names: a thousand equal hosts are one line."""
    hosts: dict[str, list[str]] = {}
    for problem in problems:
        name, sentence = of_host(problem)
        hosts.setdefault(sentence, []).extend([name] if name else [])
    return [f"{shorten(names)}: {sentence}" if names else sentence for sentence, names in hosts.items()]


def by_host(problems: Iterable[str]) -> tuple[dict[str, list[str]], list[str]]:
    """The sentences of each host by its name, and those about several hosts at once."""
    hosts: dict[str, list[str]] = {}
    shared = []
    for problem in problems:
        name, sentence = of_host(problem)
        if name:
            hosts.setdefault(name, []).append(sentence)
        else:
            shared.append(sentence)
    return hosts, shared


def of_host(problem: str) -> tuple[str, str]:
    """A host's name and the sentence about it; no name if it is about several."""
    name, separator, sentence = problem.partition(": ")
    return (name, sentence) if separator and " " not in name else ("", problem)


def host_problems(host: Host, targets: Sequence[Target]) -> list[str]:
    """Reasons why this host cannot have its targets. targets: the environment that becomes active, and those beside it."""
    facts, problems, active_target = host.known, [], targets[0]
    declared = host.variables.get("gpu_count")
    if declared is not None and declared != facts.nvidia.count:
        problems.append(
            f"gpu_count is {declared}, but the host shows {facts.nvidia.count} GPUs ({gpu_sources(facts.nvidia)}). "
            "Correct the inventory, or look for a card that is off the bus: lspci -d 10de:"
        )
    if (
        concerns("hadoop_client", host)
        and (active_target.stack is None or active_target.stack.uses_hadoop)
        and facts.hadoop is None
        and not host.variables.get("hadoop_client_hadoop_home")
    ):
        problems.append(
            "no Hadoop client found (searched the CDH, HDP, MapR and Apache locations). "
            "Install the distribution's client there, or set hadoop_client_hadoop_home."
        )
    installed_environments = facts.deeplearning.environments
    names = {target.environment for target in targets if target.environment}
    new = [name for name in names if name not in installed_environments or installed_environments[name].problem]
    if new:
        free, required_mb = facts.disk_free_mb.get("/opt"), DISK_NEEDED_MB * len(new)
        environments = "a new environment" if len(new) == 1 else f"{len(new)} new environments"
        if free is not None and free < required_mb:
            problems.append(
                f"/opt requires {required_mb} MB for {environments}, but has {free} MB free. Free some space there, or mount a larger file system."
            )
        if facts.cell_problem:
            problems.append(
                f"its wheels are imported in a cell, but this host has none. {facts.cell_problem} Let root have namespaces and mounts of its own; a container "
                "requires CAP_SYS_ADMIN."
            )
    for target in targets:
        state = installed_environments.get(target.environment)
        if state and state.lock and target.lock and state.lock != target.lock.section_digest("tensorflow"):
            form = "without" if facts.nvidia.count else "with"
            problems.append(
                f"{target.environment} was installed there as on hosts {form} GPUs, but the host has {facts.nvidia.count} now. Remove it with "
                f"playbooks/remove.yml --tags environments --limit {host.name}, then run site.yml."
            )
    if concerns("environment", host) and not host.variables.get("mirror_url"):
        problems.append(
            "mirror_url must be the address at which hosts reach the mirror, but is not set. Set it in group_vars/all."
        )
    return problems


def added_warnings(host: Host) -> list[str]:
    """Files that were added to a sealed environment: they are kept, and the environment is not rebuilt for them."""
    environments = host.known.deeplearning.environments
    return [
        f"files were added to the environment {name} since it was sealed: {', '.join(environment.added)}. They are left alone; remove them."
        for name, environment in sorted(environments.items())
        if environment.added
    ]


def listed_warnings(host: Host) -> list[str]:
    """A host of the cluster reports its own name to the manager: it may be that of a host that the site's own files name."""
    own = sorted(set(host.groups) & {"mirror_host", "build_hosts"})
    if not own or not {"cloudera_manager_roles", "ambari_roles"} & set(host.variables):
        return []
    return [
        f"it is in {' and '.join(own)}, and the cluster's manager lists a host of this name. Check that both are one machine: {host.name} must be the "
        "name that the manager has for it, with the same address."
    ]


def gpu_sources(nvidia: Nvidia) -> str:
    listed = "nvidia-smi not run" if nvidia.listed is None else f"{len(nvidia.listed)} listed by nvidia-smi"
    return f"{len(nvidia.gpus)} on the PCI bus, {listed}"


def cdsw_problems(hosts: Sequence[Host]) -> list[str]:
    """CDSW wants one model of GPU on all its hosts."""
    models: dict[str, list[str]] = {}
    for host in hosts:
        if host.known.cdsw or "cdsw_hosts" in host.groups:
            for model in gpu_layer.models(host.known.nvidia):
                models.setdefault(model, []).append(host.name)
    if len(models) < 2:
        return []
    listed = "; ".join(f"{model} on {shorten(names)}" for model, names in sorted(models.items()))
    return [
        f"CDSW requires the same make and model of GPU on all its hosts, but there are {len(models)}: {listed}. "
        "Take some hosts out of CDSW, or change their cards."
    ]


def cluster_problems(hosts: Sequence[Host], targets: Mapping[str, Target]) -> list[str]:
    """Problems that only show when hosts are compared with each other."""
    environments: dict[str, list[str]] = {}
    for host in hosts:
        environment = targets[host.name].environment
        if environment and set(host.groups) & set(TFOS_GROUPS) and targets[host.name].data.get("tensorflowonspark"):
            environments.setdefault(environment, []).append(host.name)
    problems = cdsw_problems(hosts)
    if len(environments) < 2:
        return problems
    listed = "; ".join(f"{name} on {shorten(names)}" for name, names in sorted(environments.items()))
    return [
        *problems,
        f"A TensorFlowOnSpark job requires one environment on its driver and all executors, but the groups data_nodes and edge_nodes would have {len(environments)}: "
        f"{listed}. {one_stack(hosts, environments)}",
    ]


def one_stack(hosts: Sequence[Host], environments: Mapping[str, Sequence[str]]) -> str:
    """What to do where hosts would have different environments: which of them prevent one stack for all."""
    concerned = [host for host in hosts if any(host.name in names for names in environments.values())]
    requests = [host.variables["deeplearning_request"] for host in concerned]
    if not isinstance(requests[0], Mapping) or any(request != requests[0] for request in requests):
        return "Give all of them the same deeplearning_request, or move some hosts out of these groups."
    ways = []
    for _, names in sorted(environments.items(), key=lambda item: len(item[1])):
        profiles = dict.fromkeys(host.known.profile for host in concerned if host.name not in names)
        found, _ = stacks_for(requests[0], profiles)
        ways += [f"without {shorten(names)} there is {found[0]}"] if found else []
    known = f": {'; '.join(ways)}" if ways else ""
    return (
        f"They have the same deeplearning_request, but no stack meets it on all of them{known}. "
        "Move some hosts out of these groups, or request less."
    )


def cluster_warnings(
    hosts: Sequence[Host], targets: Mapping[str, Target], additional: Mapping[str, Sequence[Target]]
) -> Iterator[str]:
    """One for each environment beside the active one that only some of the hosts get on which its jobs would run."""
    cluster = [host.name for host in hosts if set(host.groups) & set(TFOS_GROUPS)]
    environments = {name: {item.environment for item in (targets[name], *additional.get(name, ()))} for name in cluster}
    additional_targets = {
        item.environment: item for name in cluster for item in additional.get(name, ()) if not item.problems
    }
    for environment, item in sorted(additional_targets.items()):
        other_hosts = [name for name in cluster if environment not in environments[name]]
        if other_hosts and item.stack and "tensorflowonspark" in item.parts:
            yield (
                f"A job with --stack {item.stack.name} requires {environment} on its edge node and on all data nodes, but {shorten(other_hosts)} would not "
                "have it. Set deeplearning_additional_stacks there, too."
            )
