"""Which of YARN's applications hold GPUs, and which compute on those of this host. Python 2.7 and 3, standard library only; a part of report_reader.

A process belongs to the container that the kernel's cgroup names, or, if YARN uses none, CONTAINER_ID in its environment. That is the user's own text:
who writes another container there makes that one look busy, and the own one idle.
"""

import re

from . import kerberos_login, processes, yarn_admin, yarn_cluster, yarn_nodes

CONTAINER = re.compile(r"(?:CONTAINER_ID=)?container_(?:e\d{1,10}_)?(\d{1,20}_\d{1,10})_\d{1,10}_\d{1,20}\Z")
PROCESS = re.compile(r"\s*(GPU-[\w-]+), (\d{1,10})\s*\Z")  # of --query-compute-apps=gpu_uuid,pid
IDLE = "0 %"
SECONDS = 20  # for all applications; who is killed at the limit of the report leaves a ticket


def application_of(machine, pid):
    """The application in one of whose containers this process runs; None if it is in none that is known."""
    cgroup, environment = (machine.text("/proc/%s/%s" % (pid, name)) or "" for name in ("cgroup", "environ"))
    matches = [CONTAINER.match(name) for name in re.split(r"[/\n]", cgroup) + environment.split("\0")]
    return next(("application_" + match.group(1) for match in matches if match), None)


def busy(machine):
    """The applications that compute here, each with its number of GPUs; None stands for what runs in no known container.

    machine: of gpu-check. A GPU computes if it has a process and its last sample (1/6 to 1 s) is not 0 %. With MIG there is no sample: a process is enough.
    """
    loads = dict(machine.query("uuid", "utilization.gpu"))
    status, output = machine.run("nvidia-smi", "--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader")
    matches = [PROCESS.match(line) for line in output.splitlines() if line.strip()]
    if status != 0 or None in matches:
        raise ValueError("nvidia-smi must name each process with its GPU but printed: %s" % output)
    applications = []
    for uuid, load in loads.items():
        pids = [match.group(2) for match in matches if match.group(1) == uuid]
        if load.endswith("%") and load != IDLE:
            applications += set(application_of(machine, pid) for pid in pids) or [None]
        elif load != IDLE:
            applications += set(application_of(machine, pid) for pid in pids)
    return [{"application": name, "gpus": applications.count(name)} for name in set(applications)]


def holders(directories):
    """The running applications that hold GPUs, and why YARN did not answer: one of the two is None; both without a ResourceManager.

    directories: of Hadoop's configurations. Asked on the ResourceManager's host, with its own login.
    """
    problem = None
    for directory in sorted(directories):
        try:
            with yarn_admin.Admin(directory, None, None) as admin:
                for address in admin.addresses():
                    try:
                        return held(address), None
                    except yarn_cluster.NO_ANSWER as failure:
                        problem = "%s: %s" % (address, failure)
        except kerberos_login.NoLogin as failure:
            problem = str(failure)
    return None, problem


def place(address):
    """The host of a NodeManager's web address."""
    return re.sub(r"^https?://|:\d+$", "", yarn_cluster.text(address))


def held(address):
    def get(path):
        return yarn_cluster.ask("%s/ws/v1/cluster%s" % (address, path))

    applications, end = [], processes.clock() + SECONDS
    nodes_with_gpus = set(
        place(node.get("nodeHTTPAddress"))
        for node in yarn_cluster.rows(get("/nodes"), "nodes", "node")
        if yarn_nodes.gpus(node)
    )
    for row in yarn_cluster.every_row(get("/apps?states=RUNNING"), "apps", "app"):
        gpus = yarn_cluster.gpus_of(row)
        if processes.clock() > end:
            raise IOError("no list of all applications within %d s" % SECONDS)
        if gpus:
            entry = dict((name, yarn_cluster.text(row.get(name))) for name in ("id", "user", "queue"))
            nodes = nodes_with_gpus.intersection(place(web) for _, web in yarn_cluster.containers(get, entry["id"]))
            is_known = all(yarn_nodes.NAME.match(node) for node in nodes)  # anybody may register a NodeManager
            applications.append(dict(entry, gpus=gpus, nodes=sorted(nodes) if is_known else []))
    return applications
