"""Give nodes of YARN their label, and take away only what was given here, by a record. Python 2.7 and 3, standard library only.

- A label is added to the cluster's labels, as an exclusive one, before a node gets it. One that was added here and that no node has any more is removed.
- A node with a label that is not recorded as set here is the site's. If another one is asked for, nothing changes.
- The record is written before YARN is asked, so that a run after a killed one knows what it may take away.
"""

import json
import os
import time

from . import atomic_files, processes, yarn_admin, yarn_cluster, yarn_nodes

RECORD = "/opt/deeplearning/etc/yarn_labels.json"
AS_SUPERUSER = "hdfs dfs -mkdir -p {0} && hdfs dfs -chown {1} {0}"


class Refused(Exception):
    """Labels of the site that would change; the text is the message."""


class Record(object):
    """labels: of the cluster, added here. nodes: name in YARN -> the label that it got here."""

    def __init__(self, path):
        self.path, self.labels, self.nodes = path, [], {}
        if os.path.exists(path):
            with open(path, "rb") as handle:
                text = handle.read().decode("utf-8", "replace")
            try:
                record = json.loads(text)
                self.labels, self.nodes = list(record["labels"]), dict(record["nodes"])
            except (ValueError, KeyError, TypeError):
                raise Refused("%s must be the JSON object that this module wrote. Restore it from a backup." % path)

    def write(self):
        content = {"labels": self.labels, "nodes": self.nodes}
        atomic_files.write_record(self.path, content if self.labels or self.nodes else None)


def label_of(node):
    """A node has one label at most."""
    return (yarn_cluster.entries(node, None, "nodeLabels") or [""])[0]


def registered(admin, hosts, seconds):
    """(address, nodes) of YARN, once it has a node of each host that gets a label: a NodeManager that has just started is not there at once."""
    end = processes.clock() + seconds
    while True:
        address, _, nodes = yarn_nodes.cluster(admin.addresses())
        subset = [host for host in hosts if host["label"]]
        missing = [host["host"] for host in subset if not yarn_nodes.of_host(nodes, host["names"])]
        if not missing:
            return address, nodes
        if processes.clock() > end:
            raise Refused(
                "YARN must have a node of %s, but has none after %d s. No label was changed. Start the NodeManager, and run this again; if YARN has "
                "another name for the host, set node_maintenance_node." % (", ".join(missing), seconds)
            )
        time.sleep(2)


def changes(hosts, nodes, record):
    """Name in YARN -> (label, the one that it gets)."""
    label_changes, conflicts = {}, []
    labels = dict(record.nodes)  # YARN keeps the label of a node that it has forgotten
    # The name becomes a part of NODE=LABEL NODE=LABEL.
    plain = [row for row in nodes if yarn_nodes.NAME.match("%s" % row.get("nodeHostName"))]
    labels.update((row["nodeHostName"], label_of(row)) for row in plain)
    for host in hosts:
        names = [
            row["nodeHostName"]
            for row in yarn_nodes.of_host([{"nodeHostName": name} for name in labels], host["names"])
        ]
        if host["label"] and len(names) > 1:
            raise Refused(
                "YARN must have one node of %s, but has %s. No label was changed. Set node_maintenance_node to its name in YARN."
                % (host["host"], " and ".join(sorted(names)))
            )
        for name in names:
            label = labels[name]
            is_own = name in record.nodes and record.nodes[name] == label
            if label == host["label"] or not (is_own or host["label"]):
                continue
            if label and not is_own:
                conflicts.append("%s has the label %s" % (name, label))
            label_changes[name] = (label, host["label"])
    if conflicts:
        raise Refused(
            "Nodes must have the label of yarn_gpu_node_label or none, but %s, which this project did not set. Nothing was changed. Take it away "
            'there (yarn rmadmin -replaceLabelsOnNode "NODE="), or set yarn_gpu_node_label for these hosts.'
            % ", ".join(sorted(conflicts))
        )
    return label_changes


def settle(module, admin):
    """What the module returns."""
    params, record = module.params, Record(module.params["record"] or RECORD)
    hosts = params["hosts"]
    if params["state"] == "labels_none":
        hosts = [{"host": name, "names": [name], "label": ""} for name in record.nodes]
    address, nodes = registered(admin, hosts, 0 if module.check_mode else params["patience"])
    label_changes = changes(hosts, nodes, record)
    diff = sorted((name, old_label, new_label) for name, (old_label, new_label) in label_changes.items())
    if label_changes and not module.check_mode:
        give(admin, address, record, label_changes)
    unused_labels = [label for label in record.labels if label not in record.nodes.values()]
    if unused_labels and not module.check_mode:
        take_away(module, admin, record, unused_labels)
    sides = ["".join("%s %s\n" % (row[0], row[side]) for row in diff) for side in (1, 2)]
    diff_texts = {"before_header": "node labels", "after_header": "node labels", "before": sides[0], "after": sides[1]}
    return {"changed": bool(diff or unused_labels), "diff": diff_texts}


def give(admin, address, record, label_changes):
    cluster_labels = [
        entry.get("name")
        for entry in yarn_cluster.entries(
            yarn_nodes.ask(address, "/ws/v1/cluster/get-node-labels"), None, "nodeLabelInfo"
        )
    ]
    new = sorted(
        set(new_label for _, new_label in label_changes.values() if new_label and new_label not in cluster_labels)
    )
    record.labels += [label for label in new if label not in record.labels]
    record.nodes.update((name, new_label) for name, (_, new_label) in label_changes.items() if new_label)
    record.write()
    if new:
        admin.rmadmin("-addToClusterNodeLabels", ",".join("%s(exclusive=true)" % label for label in new))
    admin.rmadmin(
        "-replaceLabelsOnNode",
        " ".join("%s=%s" % (name, new_label) for name, (_, new_label) in sorted(label_changes.items())),
    )
    for name, (_, new_label) in label_changes.items():
        if not new_label:
            record.nodes.pop(name, None)
    record.write()


def take_away(module, admin, record, unused_labels):
    """From the cluster's labels; YARN keeps one that a queue of the site names."""
    for label in unused_labels:
        try:
            admin.rmadmin("-removeFromClusterNodeLabels", label)
        except yarn_admin.Failed as problem:
            module.warn("YARN keeps the label %s, which no host of this project has any more: %s" % (label, problem))
    record.labels = [label for label in record.labels if label not in unused_labels]
    record.write()


def store(module, admin):
    """The directory of labels is there. Without it a ResourceManager with labels does not start."""
    uri = module.params["store"]
    has_store = admin.has_directory(uri)
    if not module.check_mode:
        try:
            admin.own_directory(uri)
        except yarn_admin.Failed as problem:
            raise Refused(
                "The ResourceManager keeps labels in yarn_gpu_node_label_store, but %s. Nothing was changed. As the superuser of HDFS: %s"
                % (problem, AS_SUPERUSER.format(uri, admin.account))
            )
    return {"changed": not has_store}


def idle(params):
    """Whether nobody asks for a label, and none was given: then YARN is not asked, and nobody logs in."""
    labels = any(host["label"] for host in params["hosts"])
    return params["state"] != "labels_stored" and not labels and not os.path.exists(params["record"] or RECORD)
