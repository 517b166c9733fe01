"""YARN's GPUs in the plan: which hosts get which settings, why not, and what the change means there."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from ansible.module_utils.hadoop_dl_host import gpu_health

from hadoop_dl.data import yarn_nodes, yarn_work
from hadoop_dl.data.host_facts import Yarn
from hadoop_dl.data.yarn_work import NAMES, NODE_MANAGER, RESOURCE_MANAGER, Labels, Request
from hadoop_dl.plan.forms import TRUE, table
from hadoop_dl.plan.inputs import is_template
from hadoop_dl.plan.model import Host, Json

MASTERS = "masters"  # the group of NameNodes and ResourceManagers
GROUPS = (MASTERS, "data_nodes")
SERVICES = {MASTERS: RESOURCE_MANAGER, "data_nodes": NODE_MANAGER}
DEFAULT_STORE = table()["site"]["yarn_gpu_node_label_store"]["default"]
MANAGERS = {"cloudera_manager": "Cloudera Manager", "ambari": "Ambari"}
# Their own switches. Ambari's sets gpu_module_enabled of container-executor. https://blog.cloudera.com/gpus-support-in-apache-hadoop-3-1-yarn-hdp-3/
SWITCHES = {
    "cloudera_manager": "YARN, Configuration, search for gpu, as the page Configure GPU scheduling and isolation says "
    "(https://docs.cloudera.com/cdp-private-cloud-base/latest/yarn-allocate-resources/index.html)",
    "ambari": "YARN, Configs, GPU scheduling and isolation (container-executor/gpu_module_enabled)",
}

TIMER = "Run playbooks/gpu.yml, or read journalctl -u deeplearning-gpu-health on the host."


def asked(host: Host) -> bool:
    """Whether the site wants GPUs under YARN here: the host's yarn_gpu, else the constraint in deeplearning_request."""
    request = host.variables.get("deeplearning_request")
    constraint = request.get("yarn_gpu") if isinstance(request, Mapping) else False
    return bool(host.variables.get("yarn_gpu", str(constraint).lower() in TRUE))


def request_of(host: Host) -> Request:
    variables, hadoop = host.variables, host.known.hadoop
    options = {
        name: variables[f"yarn_gpu_{name}"] for name in ("devices", "discovery") if variables.get(f"yarn_gpu_{name}")
    }
    directory = variables.get("yarn_gpu_conf_dir")
    conf_dir = None if is_template(directory) else directory  # a template is what the playbooks compute of this answer
    conf_dir = (conf_dir or (hadoop.conf_dir if hadoop else None) or "/etc/hadoop/conf").rstrip("/")
    isolates = linux_executor(host, conf_dir)
    isolation = yarn_work.isolation(conf_dir, found(host), may_mount=not manager(host)) if isolates else None
    services = tuple(SERVICES[group] for group in GROUPS if group in host.groups)
    health = host.variables.get("yarn_gpu_health") is True
    return Request(conf_dir, services, isolation=isolation, labels=labels_of(host, conf_dir), health=health, **options)


def labels_of(host: Host, conf_dir: str) -> Labels | None:
    """The node label that the site wants for hosts with GPUs, and what its queues get of them."""
    label = host.variables.get("yarn_gpu_node_label")
    if not label:
        return None
    shares = {queue: int(part) for queue, part in (host.variables.get(yarn_work.SHARES) or {}).items()}
    scheduler = yarn_work.values_of(found(host), f"{conf_dir}/capacity-scheduler.xml")
    store = str(host.variables.get("yarn_gpu_node_label_store") or DEFAULT_STORE)
    return Labels(label, store, shares, yarn_work.unlimited(shares, scheduler))


def found(host: Host) -> Yarn:
    return host.known.yarn or Yarn(None, {})


def linux_executor(host: Host, conf_dir: str) -> bool | None:
    """Whether its NodeManager starts containers with LinuxContainerExecutor. A manager keeps that from the files here (None); Kerberos requires it."""
    executor = yarn_work.values_of(found(host), f"{conf_dir}/yarn-site.xml").get(yarn_work.EXECUTOR, "")
    if executor or not manager(host):
        return executor.endswith(f".{yarn_work.LINUX_EXECUTOR}")
    return (host.known.kerberos and host.known.kerberos.secure) or None


def manager(host: Host) -> str:
    """The manager that owns Hadoop's files on this host; empty for none."""
    product = host.variables.get("cluster_manager", "none")
    return found(host).manager or (product if product in MANAGERS else "")


def has_gpus(host: Host) -> bool:
    return NODE_MANAGER in request_of(host).services and host.known.nvidia.count > 0


def restarts(host: Host) -> dict[str, str]:
    """The command that restarts each daemon here, as the site names it."""
    return {daemon: str(host.variables.get(f"yarn_gpu_{daemon}_command") or "") for daemon in request_of(host).services}


def allowed(host: Host) -> bool:
    return host.variables.get("yarn_gpu_restart_allowed") is True


def version_of(host: Host) -> str:
    """Its Hadoop's, empty for unknown."""
    return (host.known.hadoop and host.known.hadoop.version) or ""


def configures(host: Host) -> bool:
    """Whether this project changes the host's files."""
    return asked(host) and not manager(host)


def unsupported(host: Host) -> Iterator[str]:
    """Why its YARN cannot schedule GPUs, whoever owns the files."""
    hadoop, request, version = host.known.hadoop, request_of(host), version_of(host)
    if hadoop and hadoop.distribution == "mapr":
        yield "yarn_gpu requires Hadoop's own services, but MapR's Warden runs those of the host. Set yarn_gpu: false (docs/reference/hadoop.md#mapr)."
        return
    if not version:
        place, remedy = "in the CDH, HDP, MapR and Apache locations", "Link /opt/hadoop to its Hadoop"
        place, remedy = (f"below {hadoop.home}", "Complete it") if hadoop else (place, remedy)
        yield (
            "yarn_gpu requires Hadoop 3.1 or later, or 2.10, but no hadoop-common-VERSION.jar says which one the host has "
            f"({place}). {remedy}, or set yarn_gpu: false."
        )
        return
    if not yarn_work.schedules_gpus(version):
        yield f"yarn_gpu requires Hadoop 3.1 or later, or 2.10, but the host has {version}. Set yarn_gpu: false (docs/operate/yarn.md)."
        return
    if version == yarn_work.BROKEN and linux_executor(host, request.conf_dir):
        yield (
            f"yarn_gpu requires another Hadoop than {version}: with LinuxContainerExecutor and the GPU module of its program container-executor no "
            "container starts (YARN-10391). Upgrade to 3.3.1 or later, or set yarn_gpu: false for this host."
        )
    yield from yarn_work.scheduler_problems(request, found(host))


def problems(host: Host) -> Iterator[str]:
    """Why the host cannot be configured."""
    if not asked(host):
        return
    reasons = list(unsupported(host))
    yield from reasons
    if reasons or manager(host):
        return
    request = request_of(host)
    yield from yarn_work.problems(request, found(host), has_gpus(host))
    named, count = request.devices.count(":"), host.known.nvidia.count
    if request.health and has_gpus(host) and request.devices != "auto" and named < count:
        yield (
            f"yarn_gpu_health requires that YARN has every GPU of the host, because a sick one that it does not have is no reason to leave, but "
            f"yarn_gpu_devices names {named} of {count}. Name all, or set yarn_gpu_health: false for this host."
        )
    for daemon, command in restarts(host).items() if allowed(host) else ():
        if not command:
            yield f"yarn_gpu_{daemon}_command must be the command that restarts the {NAMES[daemon]}, but is not set. Set it."


def warnings(host: Host, changing: bool) -> Iterator[str]:
    """Warnings before the change, or that a manager owns the files."""
    request = request_of(host)
    if not asked(host) and "yarn_gpu" in host.known.deeplearning.receipts:
        yield "YARN is configured for GPUs, but yarn_gpu is not requested any more. To restore it: playbooks/remove.yml --tags yarn_gpu"
    if not asked(host) or any(unsupported(host)):
        return
    if manager(host) or changing:
        yield from doubts(host, request)
    if manager(host):
        words = yarn_work.listed(yarn_work.settings(request, has_gpus(host)))
        yield (
            f"{MANAGERS[manager(host)]} owns Hadoop's files, so they are left alone. For GPUs under YARN use its own switch: {SWITCHES[manager(host)]}. Then "
            f"check that these files have: {words}. Set there what is missing, and restart YARN (docs/operate/yarn.md)."
        )
        if has_gpus(host) and linux_executor(host, request.conf_dir) and not request.isolation:
            yield yarn_work.NO_DEVICES
    elif changing:
        names = " and ".join(NAMES[daemon] for daemon in request.services)
        yield f"GPUs under YARN need another configuration and a restart of {names}" + (
            f": {'; '.join(restarts(host).values())}. Containers end unless YARN recovers them."
            if allowed(host)
            else ", but yarn_gpu_restart_allowed is false. Nothing is changed. Set yarn_gpu_restart_allowed: true in a window for it."
        )
        if NODE_MANAGER in request.services:
            yield under_yarn(host, request)
        if label(host):
            yield f"YARN gives it the exclusive node label {label(host)}: jobs that do not name the label get no new container there any more (docs/operate/yarn.md)."


def health_warnings(host: Host) -> Iterator[str]:
    """What gpu-check's last answer means to YARN; nothing if all is well."""
    if not (asked(host) and request_of(host).health and has_gpus(host)) or any(unsupported(host)):
        return
    answer = found(host).gpu_health
    if answer is None:
        yield f"YARN leaves it in, whatever its GPUs have: {gpu_health.PATH} is missing. {TIMER}"
    elif answer.minutes >= gpu_health.MINUTES:
        yield f"YARN leaves it in, whatever its GPUs have: {gpu_health.PATH} is {answer.minutes} minutes old. {TIMER}"
    elif answer.line.startswith((gpu_health.SICK, gpu_health.UNASKED)):
        effect = (
            "has it UNHEALTHY" if answer.line.startswith(gpu_health.SICK) else "leaves it in, whatever its GPUs have"
        )
        yield f"YARN {effect}: {answer.line}"


def doubts(host: Host, request: Request) -> Iterator[str]:
    """What may keep containers from GPUs that YARN counts."""
    version = version_of(host)
    if (
        re.match(rf"{re.escape(yarn_work.BROKEN)}(?!\d)", version)
        and linux_executor(host, request.conf_dir) is not False
    ):
        yield (
            f"Hadoop {yarn_work.BROKEN} with LinuxContainerExecutor and GPUs starts no container (YARN-10391, fixed in 3.3.1). Whether {version} does here "
            "is not known: ask its vendor for that fix, and try one host first."
        )
    if host.known.nvidia.divided and has_gpus(host):
        yield (
            f"MIG divides {host.known.nvidia.divided} of its {host.known.nvidia.count} GPUs, and YARN knows no parts: each such card is one GPU for YARN, a "
            "container computes on its first part, and the other parts are idle. Turn MIG off for YARN (docs/operate/yarn.md)."
        )


def under_yarn(host: Host, request: Request) -> str:
    """A sentence about the GPUs that containers see on this host."""
    if not has_gpus(host):
        return "it has no GPU, so its NodeManager offers none."
    if request.isolation is None:
        return f"under YARN {yarn_work.NOT_ISOLATED}."
    beside = ", which it mounts beside cgroup v2" if request.isolation.mount else ""
    return f"under YARN a container sees its own GPUs alone: LinuxContainerExecutor denies it the others in {request.isolation.directory}{beside}."


def offered(host: Host) -> str:
    """The same in a few words, for the plan's table."""
    if not has_gpus(host):
        labels = request_of(host).labels if RESOURCE_MANAGER in request_of(host).services else None
        return "yarn.io/gpu" + (
            f", node label {labels.label} for {', '.join(labels.shares) or 'hosts'}" if labels else ""
        )
    words = ["yarn.io/gpu", "isolated by the devices cgroup" if request_of(host).isolation else "not isolated"]
    words += ["leaves YARN while a GPU is sick"] * request_of(host).health
    return ", ".join(words + [f"node label {label(host)}"] * bool(label(host)))


def label(host: Host) -> str:
    """The node label that its node gets; empty for none."""
    labels = request_of(host).labels if has_gpus(host) and configures(host) else None
    return labels.label if labels else ""


def part(host: Host) -> Json:
    """The inputs of the role yarn_gpu on this host."""
    request = request_of(host)
    return {
        "conf_dir": request.conf_dir,
        "services": list(request.services),
        "gpu_count": host.known.nvidia.count if has_gpus(host) else 0,
        "isolation": asdict(request.isolation) if request.isolation and has_gpus(host) else {},
        "label": label(host),
        "labels": asdict(request.labels) if request.labels and RESOURCE_MANAGER in request.services else {},
    }


def node(host: Host) -> Json:
    """This host's node as the ResourceManager must report it, for the suite; empty if YARN gets no GPUs here."""
    request = request_of(host)
    if not asked(host) or NODE_MANAGER not in request.services or any(unsupported(host)):
        return {}
    gpus = host.known.nvidia.count if request.devices == "auto" else len(request.devices.split(","))
    return {
        "gpus": gpus if has_gpus(host) else 0,
        "conf_dir": request.conf_dir,
        "names": list(yarn_names(host)),
        "label": label(host),
        "plugin": looks(host),
    }


def looks(host: Host) -> bool:
    """Whether its NodeManager runs nvidia-smi again and again. It does not before Hadoop 3.3 (3.1.1, 3.2.4), nor for GPUs that the site names."""
    version = re.match(r"(\d+)\.(\d+)", version_of(host))
    old = version is not None and (int(version[1]), int(version[2])) < yarn_work.LOOKS
    return has_gpus(host) and request_of(host).devices == "auto" and not old


def driver_warnings(host: Host) -> Iterator[str]:
    """What a change of the driver means to its NodeManager."""
    if not node(host).get("plugin") or host.variables.get("upgrade_drain") is True:
        return
    command = restarts(host)[NODE_MANAGER] if allowed(host) else ""
    yield (
        "its NodeManager runs nvidia-smi every 3 s and gives up after 10 failures, because upgrade_drain is not true: a look of it may keep the old driver in "
        "the kernel, and a reboot is required then. Set upgrade_drain: true. Without it the run asks the NodeManager afterwards, and "
        + (
            f"restarts one that gave up: {command}."
            if command
            else "stops if it gave up, because yarn_gpu_restart_allowed is not true."
        )
    )


def drained(hosts: Sequence[Host]) -> Iterator[tuple[str, str]]:
    """The nodes that node_maintenance has out of YARN: each once, with the host that the sentence is about."""
    reported_names: set[str] = set()
    for keeper in hosts:  # the ResourceManagers' hosts have the records
        recorded = keeper.facts.yarn.drained if keeper.facts and keeper.facts.yarn else {}
        for name in sorted(set(recorded) - reported_names):
            host = next((candidate for candidate in hosts if yarn_nodes.is_named(name, yarn_names(candidate))), None)
            subject, node_text = (host.name, "it") if host and host.facts else (keeper.name, name)
            yield (
                subject,
                f"node_maintenance took {node_text} out of YARN at {recorded[name]} (recorded on {keeper.name}). An upgrade that stopped there resumes "
                "with the same command. To put it back now: ansible-playbook playbooks/node_maintenance.yml -e node_maintenance_state=running "
                f"--limit {host.name if host else 'HOST'}",
            )
        reported_names |= set(recorded)


def yarn_names(host: Host) -> Sequence[str]:
    return yarn_nodes.names_of(host.name, host.variables)


def site_problems(hosts: Sequence[Host], masters: Sequence[str], data_nodes: Sequence[str]) -> list[str]:
    """Problems of several hosts together. masters, data_nodes: all of the inventory, also hosts that are not in this run."""
    concerned = [host for host in hosts if host.facts and "data_nodes" in host.groups and configures(host)]
    problems = [
        f"{host.name}: yarn_gpu requires the ResourceManager in the group {MASTERS}, because it must know the resource first, but that group is empty. Add it."
        for host in concerned
        if not masters
    ]
    read = [host for host in hosts if host.name in masters and host.facts]
    if concerned and read and not any(asked(host) for host in read):
        problems.append(
            f"yarn_gpu must be set for the group {MASTERS} as well, because the ResourceManager must know the resource first, but it is set for data "
            "nodes alone. Set it for all (group_vars/all.yml)."
        )
    master_labels = {host.variables.get("yarn_gpu_node_label") for host in hosts if host.name in masters}
    problems += [
        f"{host.name}: yarn_gpu_node_label must be that of the group {MASTERS} or empty, because its queues have one label, but is {label(host)}. Set it for all."
        for host in concerned
        if label(host) and master_labels and master_labels != {label(host)}
    ]
    if data_nodes and {host.name for host in concerned if label(host)} >= set(data_nodes):
        problems.append(
            "yarn_gpu_node_label would leave no data node to jobs that do not name the label, and none to the masters of the others: every data node has GPUs. "
            'Set yarn_gpu_node_label: "" for some of them, or for all.'
        )
    return problems
