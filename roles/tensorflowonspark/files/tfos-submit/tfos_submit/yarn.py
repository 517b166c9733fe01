"""What YARN says, through the web address of its ResourceManager and through its command."""

import os
import re

from ansible.module_utils.hadoop_dl_host import processes
from ansible.module_utils.hadoop_dl_host.user_environment import NotReady
from ansible.module_utils.hadoop_dl_host.yarn_cluster import (
    NO_ANSWER,
    Refused,
    amount,
    ask,
    containers,
    entries,
    every_row,
    gpus_in,
    rows,
    text,
)
from ansible.module_utils.hadoop_dl_host.yarn_nodes import current

from tfos_submit.outcome import say

try:
    from urllib.parse import quote  # novermin
except ImportError:  # Python 2.7
    from urllib import quote  # novermin

TIMEOUT = 60  # seconds for one call of the yarn command
WAITING = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED")  # nothing of the application runs yet
ENDED = ("FINISHED", "FAILED", "KILLED")
# What the yarn command writes beside its reason: lines of its log, and the stack of an exception.
NOISE = re.compile(r"^(?:$|\s|SLF4J|WARNING:|log4j:|(?:\d\d)?\d\d[-/]\d\d[-/]\d\d .* (?:DEBUG|INFO|WARN) )")


def words(answer):
    """The yarn command's own reason for a failure; answer: of processes.run."""
    lines = [line for line in (answer.output + "\n" + answer.error).splitlines() if not NOISE.match(line)]
    return answer.problem if answer.late or not lines else re.sub(r"^Caused by: ", "", lines[-1])


def number(application):
    """By which applications sort in the order of their submission, as YARN numbers them also after its own restart."""
    return [int(digits) for digits in re.findall(r"\d+", str(application.get("id")))]


class YarnCommand(object):
    """The yarn command of this host's Hadoop, with the variables of the driver."""

    def __init__(self, hadoop_home, variables):
        candidates = [os.path.join(hadoop_home, "bin", "yarn"), "/usr/bin/yarn"]
        self.program = ([path for path in candidates if os.access(path, os.X_OK)] or ["yarn"])[0]
        self.variables = dict(variables)
        self.variables.pop("CLASSPATH", None)  # of libhdfs; the launcher makes its own

    def run(self, *arguments, **options):
        """What the command prints; empty if it fails. quietly: without a word of why."""
        answer = processes.run([self.program] + list(arguments), TIMEOUT, self.variables)
        if answer.problem and not options.get("quietly"):
            say("yarn %s failed: %s" % (" ".join(arguments), words(answer)))
        return "" if answer.problem else answer.output

    def kill(self, application):
        return self.run("application", "-kill", application)

    def logs(self, application, quietly=False):
        return self.run("logs", "-applicationId", application, quietly=quietly)


class ResourceManager(object):
    """Reads the ResourceManager's REST interface."""

    def __init__(self, addresses):
        self.addresses = list(addresses)
        self.problem = None  # why the last one that asked for a ticket did not answer
        self.partition = None  # where the job's executors can come (labels.Partition); not known: everywhere

    def get(self, path):
        """The answer as a mapping, or None if no ResourceManager gives one."""
        for address in self.addresses:
            try:
                return ask(address + "/ws/v1/cluster" + path)
            except Refused as refused:
                self.problem = str(refused)
            except NO_ANSWER:
                continue
        return None

    def place(self):
        """The addresses, or why the last one refused: for a message that none answers."""
        return self.problem or ", ".join(self.addresses) or "none configured"

    def applications_of(self, user):
        """Every application of the user that YARN remembers, as mappings of its answer. Raises NotReady if none answers."""
        return self.applications("user=" + quote(user))

    def applications(self, query):
        answer = self.get("/apps?" + query)
        try:
            every_row(answer, "apps", "app")
        except NO_ANSWER:
            raise NotReady(
                "the ResourceManager's web address (%s) must answer, but does not. Try: yarn application -list"
                % self.place()
            )
        return applications(answer)

    def named(self, name):
        """The application with this identifier; {} if YARN does not know it or does not answer."""
        return (applications({"apps": self.get("/apps/" + name)}) or [{}])[0]

    def application(self, tag):
        """The application with this tag; None while there is none."""
        return (applications(self.get("/apps?applicationTags=" + tag)) or [None])[0]

    def every_node(self):
        """None if YARN does not answer."""
        answer = self.get("/nodes")
        return None if answer is None else [node_summary(node) for node in current(rows(answer, "nodes", "node"))]

    def nodes(self):
        """Those that the job's executors can come to."""
        return [node for node in self.every_node() or [] if not self.partition or self.partition.has(node)]

    def scheduler(self):
        """What the scheduler tells of itself and its queues; {} if YARN does not answer."""
        return (rows(self.get("/scheduler"), "scheduler", "schedulerInfo") or [{}])[0]

    def containers(self, application):
        """Identifiers and NodeManagers' web addresses of the containers that run now."""
        found = containers(self.get, application)
        return [(name, address if "://" in address else "http://" + address) for name, address in found]


def applications(answer):
    """The applications of YARN's answer, each value in its form: names and texts are those of any user."""
    return [row for row in map(application_row, rows(answer, "apps", "app")) if row["id"]]


def application_row(row):
    names = ("name", "user", "queue", "state", "finalStatus", "diagnostics", "trackingUrl", "logAggregationStatus")
    names += ("applicationTags",)
    values = dict((name, text(row.get(name))) for name in names)
    values["id"] = text(row.get("id"), r"application_\d+_\d+")
    values.update((name, amount(row.get(name))) for name in ("startedTime", "finishedTime", "runningContainers"))
    return dict(values, resourceInfo=row.get("resourceInfo"))


def leaf_queue(queue, name):
    """The leaf of the capacity scheduler with this name or path, below this queue of the answer; {} if there is none."""
    for child in rows(queue, "queues", "queue"):
        leaf = leaf_queue(child, name)
        if leaf:
            return leaf
        if not child.get("queues") and text(child.get("queueName")) == name.rpartition(".")[2]:
            return child
    return {}


def node_summary(node):
    """What matters of a node, from the ResourceManager's answer."""
    free_mb, used_mb, free_vcores, used_vcores = [
        int(amount(node.get(name)))
        for name in ("availMemoryMB", "usedMemoryMB", "availableVirtualCores", "usedVirtualCores")
    ]
    return {
        "name": text(node.get("nodeHostName")) or text(node.get("id")),
        "state": text(node.get("state")),
        "health": text(node.get("healthReport")),
        "labels": [text(label) for label in entries(node, None, "nodeLabels")],
        "free_mb": free_mb,
        "total_mb": free_mb + used_mb,
        "free_vcores": free_vcores,
        "total_vcores": free_vcores + used_vcores,
        "free_gpus": gpus_in(node.get("availableResource")),
        "total_gpus": gpus_in(node.get("availableResource")) + gpus_in(node.get("usedResource")),
    }
