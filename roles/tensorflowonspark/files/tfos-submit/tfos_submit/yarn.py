# -*- coding: utf-8 -*-
"""What YARN says, through the web address of its ResourceManager and through its command."""

from __future__ import absolute_import, division, print_function

import json
import os
import re

from ansible.module_utils.hadoop_dl_host import processes
from ansible.module_utils.hadoop_dl_host.yarn_cluster import Refused, entries, fetch

from tfos_submit.outcome import say

TIMEOUT = 60  # seconds for one call of the yarn command
WAITING = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED")  # nothing of the application runs yet
ENDED = ("FINISHED", "FAILED", "KILLED")


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
        """What the command prints; empty where it fails."""
        answer = processes.run([self.program] + list(arguments), TIMEOUT, self.variables)
        if answer.problem:
            reason = answer.problem if answer.late or not answer.error else answer.error.splitlines()[-1]
            say("yarn %s failed: %s" % (" ".join(arguments), reason))
        return "" if answer.problem else answer.output

    def kill(self, application):
        self.run("application", "-kill", application)

    def logs(self, application):
        return self.run("logs", "-applicationId", application)


class ResourceManager(object):
    """Reads the ResourceManager's REST interface."""

    def __init__(self, addresses):
        self.addresses = list(addresses)
        self.problem = None  # why the last one that asked for a ticket did not answer

    def get(self, path):
        """The answer as a mapping, or None where no ResourceManager gives one."""
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

    def application(self, tag):
        """The application with this tag; None while there is none."""
        answer = self.get("/apps?applicationTags=" + tag)
        applications = entries(answer, "apps", "app")
        return applications[0] if applications else None

    def nodes(self):
        answer = self.get("/nodes")
        return [node_summary(node) for node in entries(answer, "nodes", "node")]

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


def node_summary(node):
    """What matters of a node, from the ResourceManager's answer."""

    def gpus(part):
        for resource in entries(node.get(part), "resourceInformations", "resourceInformation"):
            if resource.get("name") == "yarn.io/gpu":
                return int(resource.get("value", 0))
        return 0

    return {
        "name": node.get("nodeHostName") or node.get("id"),
        "state": node.get("state"),
        "free_mb": int(node.get("availMemoryMB", 0)),
        "total_mb": int(node.get("availMemoryMB", 0)) + int(node.get("usedMemoryMB", 0)),
        "free_vcores": int(node.get("availableVirtualCores", 0)),
        "total_vcores": int(node.get("availableVirtualCores", 0)) + int(node.get("usedVirtualCores", 0)),
        "free_gpus": gpus("availableResource"),
        "total_gpus": gpus("availableResource") + gpus("usedResource"),
    }
