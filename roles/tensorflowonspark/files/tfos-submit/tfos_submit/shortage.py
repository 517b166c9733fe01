# -*- coding: utf-8 -*-
"""What was asked, what YARN has, and what to do, when executors do not come."""

from __future__ import absolute_import, division, print_function

import re


def shortage(options, application, nodes, running):
    """What was asked, what YARN had, and what to do, when executors do not come."""
    given = max(0, int(application.get("runningContainers", 0)) - 1)
    state = application.get("state")
    lines = [
        "%d executors were asked for, each with %d MB and %d vcore%s, in queue %s; %s."
        % (
            options.executors,
            options.memory,
            options.cores,
            "" if options.cores == 1 else "s",
            application.get("queue", options.queue or "default"),
            "YARN has not started the application's own master yet (%s)" % state
            if state != "RUNNING"
            else "after %d s YARN has given %d of them" % (options.wait, given),
        )
    ]
    if nodes:
        lines.append("YARN has:")
        lines.append("  %-24s %-14s %16s %14s %12s" % ("node", "state", "MB free/total", "vcores", "GPUs"))
        for node in sorted(nodes, key=lambda node: str(node["name"])):
            lines.append(
                "  %-24s %-14s %16s %14s %12s"
                % (
                    node["name"],
                    node["state"],
                    "%(free_mb)d/%(total_mb)d" % node,
                    "%(free_vcores)d/%(total_vcores)d" % node,
                    "%(free_gpus)d/%(total_gpus)d" % node,
                )
            )
    else:
        lines.append("YARN has no node at all.")
    if diagnostics(application):
        lines.append("YARN says: " + diagnostics(application))
    lines.append("What to do: " + " ".join(remedies(options, nodes, running, given)))
    return "\n".join(lines)


def diagnostics(application):
    """YARN's own words about an application, on one line."""
    return re.sub(r"\s+", " ", application.get("diagnostics") or "").strip()[:600]


def remedies(options, nodes, running, given):
    """The next steps that fit the cluster's state."""
    usable = [node for node in nodes if node["state"] == "RUNNING"]
    away = sorted(str(node["name"]) for node in nodes if node["state"] != "RUNNING")
    steps = []
    if away:
        steps.append(
            "bring back %s (systemctl status hadoop-yarn-nodemanager there, or the cluster's manager)."
            % ", ".join(away)
        )
    if not usable:
        return steps or ["start the NodeManagers; yarn node -list -all shows them."]
    largest = max(node["total_mb"] for node in usable)
    if options.memory > largest:
        steps.append("ask for less memory than the largest node has: --memory %dm." % largest)
    elif max(node["total_vcores"] for node in usable) < options.cores:
        steps.append(
            "ask for fewer cores than the largest node has: --cores %d." % max(node["total_vcores"] for node in usable)
        )
    else:
        fits = given + sum(
            min(node["free_mb"] // options.memory, node["free_vcores"] // options.cores) for node in usable
        )
        if fits < options.executors:
            steps.append("ask for what fits now: --executors %d, or a smaller --memory or --cores." % max(1, fits))
        else:
            steps.append(
                "there is room, so the queue's or the user's limit holds it back: yarn queue -status %s."
                % (options.queue or "default")
            )
    if running:
        steps.append(
            "%d other application%s running (yarn application -list): wait for them."
            % (running, " is" if running == 1 else "s are")
        )
    return steps
