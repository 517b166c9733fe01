"""--node-label: the nodes of YARN that executors can come to, and what must be true before a job asks for a label.

https://hadoop.apache.org/docs/r3.3.6/hadoop-yarn/hadoop-yarn-site/NodeLabel.html: a node has one label at most. A request without a label gets nodes
without one, and what is idle on those whose label is not exclusive.
"""

from ansible.module_utils.hadoop_dl_host.user_environment import NotReady
from ansible.module_utils.hadoop_dl_host.yarn_cluster import amount, entries, rows, text

from tfos_submit.yarn import leaf_queue

SCHEDULER = "capacityScheduler"
SETTING = "spark.yarn.executor.nodeLabelExpression"  # the master needs no GPU, so it is left to the queue


class Partition(object):
    """The nodes that executors can come to. label: of each; empty: none. exclusive: YARN's labels that are for requests with them alone."""

    def __init__(self, label, exclusive):
        self.label, self.exclusive = label, exclusive

    def has(self, node):
        if self.label:
            return self.label in node["labels"]
        return not self.exclusive.intersection(node["labels"])

    def others(self):
        """A sentence about nodes that do not count; empty if there can be none."""
        if self.label or not self.exclusive:
            return ""
        return " Nodes with a label (%s) are for jobs with --node-label." % ", ".join(sorted(self.exclusive))


def words(options):
    """The node label, as an addition to what executors request."""
    return ", node label %s" % options.node_label if options.node_label else ""


def partition(options, manager):
    """Where the job's executors can come; None if YARN does not answer. If the job names no label, that of its queue counts."""
    nodes = manager.every_node()
    if nodes is None:
        return None
    known_labels = dict((label, True) for node in nodes for label in node["labels"])
    answer = manager.get("/get-node-labels")
    known_labels.update((text(name), True) for name in entries(answer, None, "nodeLabels"))  # of Hadoop 2.7
    for row in rows(answer, None, "nodeLabelInfo"):
        known_labels[text(row.get("name"))] = str(row.get("exclusivity", True)).lower() != "false"
    requested_label, queue = options.node_label, options.queue or "default"
    scheduler = manager.scheduler() if known_labels or requested_label else {}
    kind = text(scheduler.get("type")) or SCHEDULER
    if kind != SCHEDULER:  # it ignores labels
        if requested_label:
            raise NotReady(
                "the node label %s requires YARN's %s, but YARN has the %s, which gives every node to every job. Leave --node-label out; "
                "docs/train/jobs.md has other ways to GPUs." % (requested_label, SCHEDULER, kind)
            )
        return Partition(None, set())
    leaf = leaf_queue(scheduler, queue)
    options.node_label = requested_label or text(leaf.get("defaultNodeLabelExpression")) or None
    problem = requested_label and (unknown(requested_label, known_labels) or nowhere(requested_label, nodes))
    if options.queue and not problem:  # without a name YARN may choose another queue than `default` (queue-mappings)
        problem = closed(options.node_label, queue, leaf)
    if problem:
        raise NotReady(problem)
    return Partition(options.node_label, set(name for name, exclusive in known_labels.items() if exclusive))


def unknown(label, labels):
    if label in labels:
        return None
    if not labels:
        return (
            "the node label %s must be one of YARN's, but YARN has none: node labels are not enabled, or none was added. Leave --node-label out, or "
            "ask the operator for the label (docs/operate/yarn.md)." % label
        )
    return "the node label %s must be one of YARN's, but YARN has %s. Name one of them (--node-label)." % (
        label,
        ", ".join(sorted(labels)),
    )


def nowhere(label, nodes):
    having = [node for node in nodes if label in node["labels"]]
    if any(node["state"] == "RUNNING" for node in having):
        return None
    return (
        "a running node must have the label %s, but %s. Ask the operator for it (docs/operate/yarn.md), or name another label."
        % (
            label,
            ", ".join("%s is %s" % (node["name"], node["state"]) for node in having) or "no node has it",
        )
    )


def closed(label, queue, leaf):
    """Why a queue takes no job, or gives it nothing of a label. leaf: of the capacity scheduler's answer; {}: it is not known."""
    ask = "Name another queue (--queue), or ask the operator (docs/operate/yarn.md)."
    if leaf.get("maxApplications") == 0:
        return (
            "the queue %s must take applications, but its maximum-applications is 0: without that setting, YARN derives it from the queue's share of "
            "nodes without a label. %s" % (queue, ask)
        )
    if not leaf or not label:
        return None
    shares = dict(
        (text(row.get("partitionName")), amount(row.get("absoluteMaxCapacity")))
        for row in rows(leaf.get("capacities"), None, "queueCapacitiesByPartition")
    )
    problem = None
    if not set(["*", label]).intersection(map(text, entries(leaf, None, "nodeLabels"))):
        problem = "it has no access to them (accessible-node-labels)"
    elif shares and not shares.get(label):
        problem = "it has 0 %% of them (accessible-node-labels.%s.capacity)" % label
    return problem and "the queue %s must give nodes with the label %s, but %s. %s" % (queue, label, problem, ask)
