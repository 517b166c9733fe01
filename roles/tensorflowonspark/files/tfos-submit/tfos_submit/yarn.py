# -*- coding: utf-8 -*-
"""What YARN says, through the web address of its ResourceManager and through its command."""

from __future__ import absolute_import, division, print_function

import json
import os
import re

from ansible.module_utils.hadoop_dl_host import processes
from ansible.module_utils.hadoop_dl_host.user_environment import NotReady
from ansible.module_utils.hadoop_dl_host.yarn_cluster import Refused, entries, fetch

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

    def run(self, *arguments):
        """What the command prints; empty if it fails."""
        answer = processes.run([self.program] + list(arguments), TIMEOUT, self.variables)
        if answer.problem:
            say("yarn %s failed: %s" % (" ".join(arguments), words(answer)))
        return "" if answer.problem else answer.output

    def kill(self, application):
        return self.run("application", "-kill", application)

    def logs(self, application):
        return self.run("logs", "-applicationId", application)


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
                answer = json.loads(fetch(address + "/ws/v1/cluster" + path))
            except Refused as refused:
                self.problem = str(refused)
                continue
            except (IOError, OSError, ValueError):  # unreachable, refused, or a standby's page
                continue
            if isinstance(answer, dict):
                return answer
        return None

    def place(self):
        """The addresses, or why the last one refused: for a message that none answers."""
        return self.problem or ", ".join(self.addresses) or "none configured"

    def applications_of(self, user):
        """Every application of the user that YARN remembers, as mappings of its answer. Raises NotReady if none answers."""
        answer = self.get("/apps?user=" + quote(user))
        if answer is None:
            raise NotReady(
                "the ResourceManager's web address (%s) must answer, but does not. Try: yarn application -list"
                % self.place()
            )
        return entries(answer, "apps", "app")

    def named(self, name):
        """The application with this identifier; {} if YARN does not know it or does not answer."""
        return (self.get("/apps/" + name) or {}).get("app") or {}

    def application(self, tag):
        """The application with this tag; None while there is none."""
        answer = self.get("/apps?applicationTags=" + tag)
        applications = entries(answer, "apps", "app")
        return applications[0] if applications else None

    def every_node(self):
        """None if YARN does not answer."""
        answer = self.get("/nodes")
        return None if answer is None else [node_summary(node) for node in entries(answer, "nodes", "node")]

    def nodes(self):
        """Those that the job's executors can come to."""
        return [node for node in self.every_node() or [] if not self.partition or self.partition.has(node)]

    def scheduler(self):
        """What the scheduler tells of itself and its queues; {} if YARN does not answer."""
        return ((self.get("/scheduler") or {}).get("scheduler") or {}).get("schedulerInfo") or {}

    def containers(self, application):
        """Identifiers and NodeManager addresses of the containers that run now."""
        attempts = self.get("/apps/%s/appattempts" % application)
        containers = []
        for attempt in entries(attempts, "appAttempts", "appAttempt"):
            name = attempt.get("appAttemptId") or attempt.get("id")
            answer = self.get("/apps/%s/appattempts/%s/containers" % (application, name))
            for container in entries(answer, None, "container"):
                containers.append((container.get("containerId"), container.get("nodeHttpAddress")))
        return [(name, address) for name, address in containers if name and address]


def leaf_queue(queue, name):
    """The leaf of the capacity scheduler with this name or path, below this queue of the answer; {} if there is none."""
    for child in entries(queue, "queues", "queue"):
        leaf = leaf_queue(child, name)
        if leaf:
            return leaf
        if not child.get("queues") and child.get("queueName") == name.rpartition(".")[2]:
            return child
    return {}


def gpus_in(resources):
    """The GPUs of a part of the ResourceManager's answer, such as a node's usedResource."""
    for resource in entries(resources, "resourceInformations", "resourceInformation"):
        if resource.get("name") == "yarn.io/gpu":
            return int(resource.get("value", 0))
    return 0


def gpus_of(application):
    """The GPUs that an application has now; None if YARN does not report its resources."""
    parts = entries(application.get("resourceInfo"), None, "resourceUsagesByPartition")
    return sum(gpus_in(part.get("used")) for part in parts) if parts else None


def node_summary(node):
    """What matters of a node, from the ResourceManager's answer."""
    return {
        "name": node.get("nodeHostName") or node.get("id"),
        "state": node.get("state"),
        "health": re.sub(r"\s+", " ", "%s" % (node.get("healthReport") or "")).strip(),
        "labels": entries(node, None, "nodeLabels"),
        "free_mb": int(node.get("availMemoryMB", 0)),
        "total_mb": int(node.get("availMemoryMB", 0)) + int(node.get("usedMemoryMB", 0)),
        "free_vcores": int(node.get("availableVirtualCores", 0)),
        "total_vcores": int(node.get("availableVirtualCores", 0)) + int(node.get("usedVirtualCores", 0)),
        "free_gpus": gpus_in(node.get("availableResource")),
        "total_gpus": gpus_in(node.get("availableResource")) + gpus_in(node.get("usedResource")),
    }
