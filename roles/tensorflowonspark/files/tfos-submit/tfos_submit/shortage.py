"""What a job requested, what YARN has, and what to do, if YARN does not give its executors."""

import re

from ansible.module_utils.hadoop_dl_host.yarn_nodes import UNHEARD

from tfos_submit import labels

# NodeState of Hadoop 2.6 to 3.4, but RUNNING.
STATES = {
    "NEW": "is registering: wait.",
    "UNHEALTHY": "is UNHEALTHY ({0}): ask the operator to repair that.",
    "DECOMMISSIONING": "is being taken out of YARN by the operator.",
    "DECOMMISSIONED": "was taken out of YARN by the operator.",
    "LOST": "is LOST: it no longer reports. Ask the operator whether the host and its NodeManager run.",
    "REBOOTED": "is restarting: wait.",
    "SHUTDOWN": "is SHUTDOWN: its NodeManager was stopped. Ask the operator for how long.",
}


def each(options):
    """What every executor requests."""
    parts = ["%d MB" % options.memory, "%d vcore%s" % (options.cores, "" if options.cores == 1 else "s")]
    if options.gpus:
        parts.append("%d GPU%s (yarn.io/gpu)" % (options.gpus, "" if options.gpus == 1 else "s"))
    return ", ".join(parts[:-1]) + " and " + parts[-1]


def shortage(options, application, nodes, running):
    """The message about executors that YARN did not give."""
    executor_count = max(0, int(application.get("runningContainers", 0)) - 1)
    state = application.get("state")
    lines = [
        "%d executors were asked for, each with %s%s, in queue %s; %s."
        % (
            options.executors,
            each(options),
            labels.words(options),
            application.get("queue", options.queue or "default"),
            "YARN has not started the application's own master yet (%s)" % state
            if state != "RUNNING"
            else "after %d s YARN has given %d of them" % (options.wait, executor_count),
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
    lines.append("What to do:")
    lines.extend("  " + step for step in remedies(options, nodes, running, executor_count))
    return "\n".join(lines)


def diagnostics(application):
    """YARN's own words about an application, on one line."""
    return re.sub(r"\s+", " ", application.get("diagnostics") or "").strip()[:600]


def places(node, options):
    """How many more executors fit onto a node."""
    numbers = [node["free_mb"] // options.memory, node["free_vcores"] // options.cores]
    return min(numbers + ([node["free_gpus"] // options.gpus] if options.gpus else []))


def state_words(node):
    """A sentence about a node that YARN gives nothing of."""
    sentence = STATES.get(node["state"], "is %s." % node["state"])
    if node["state"] == "RUNNING":
        sentence = "has not reported to the restarted ResourceManager: ask the operator to restart its NodeManager."
    health = node["health"] if node["state"] == "UNHEALTHY" else ""
    return "%s %s" % (node["name"], sentence.format(health[:300].rstrip(". ;") or "YARN does not say why"))


def remedies(options, nodes, running, executor_count):
    """The next steps that fit the cluster's state."""
    usable = [node for node in nodes if node["state"] == "RUNNING" and node["health"] != UNHEARD]
    steps = [state_words(node) for node in sorted(nodes, key=lambda node: str(node["name"])) if node not in usable]
    if not usable:
        return steps or ["no NodeManager runs: tell the operator; yarn node -list -all shows them."]
    largest, most_gpus = (max(node[name] for node in usable) for name in ("total_mb", "total_gpus"))
    if options.memory > largest:
        steps.append("ask for less memory than the largest node has: --memory %dm." % largest)
    elif max(node["total_vcores"] for node in usable) < options.cores:
        steps.append(
            "ask for fewer cores than the largest node has: --cores %d." % max(node["total_vcores"] for node in usable)
        )
    elif (options.gpus or 0) > most_gpus:
        steps.append("ask for no more GPUs than the node with most has: --gpus %d." % most_gpus)
    else:
        fits = executor_count + sum(places(node, options) for node in usable)
        if fits < options.executors:
            smaller = "smaller --memory, --cores or --gpus" if options.gpus else "smaller --memory or --cores"
            less = "larger --per-node" if options.per_node else smaller
            steps.append("ask for what fits now: --executors %d, or a %s." % (max(1, fits), less))
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
