"""The ResourceManager's file of excluded NodeManagers, and which of its lines are this project's. Python 2.7 and 3, standard library only.

The plain form: names with white space between them, a # begins a comment (org.apache.hadoop.util.HostsFileReader, 2.10 and 3.3.6).
"""

import json
import os
import time

from . import atomic_files, host_yarn
from .yarn_cluster import hadoop_configuration

RECORD = host_yarn.DRAINED
PROPERTY = "yarn.resourcemanager.nodes.exclude-path"
LARGEST = 8 * 1024 * 1024


class Unusable(ValueError):
    """A file that this project cannot change; the text is the message."""


def place(directory):
    """The file that yarn-site.xml of this directory names."""
    value = hadoop_configuration(directory).get(PROPERTY)
    if not value:
        raise Unusable(
            "%s/yarn-site.xml must name a file in %s, in which the ResourceManager looks for NodeManagers that leave, but does not. Set it to "
            "an empty file on every ResourceManager; it is read at the next refresh, without a restart."
            % (directory, PROPERTY)
        )
    path = value[len("file://") :] if value.startswith("file:///") else value
    if not path.startswith("/") or not os.path.isfile(path):
        raise Unusable(
            "%s of %s/yarn-site.xml must be a file of this host, but %s is none. Create it (empty), or put only hosts with a ResourceManager into "
            "the group resource_managers." % (PROPERTY, directory, value)
        )
    if path.endswith(".xml"):
        raise Unusable(
            "%s must have one name in a line, but it is XML, which this project does not change. Drain the host by your own means (docs/operate/operations.md)."
            % path
        )
    atomic_files.keeper(path, chooser=os.path.join(directory, "yarn-site.xml"))
    return path


def read(path):
    with atomic_files.as_keeper(path), open(path, "rb") as handle:
        data = handle.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise Unusable("%s must have at most 8 MiB. Correct %s." % (path, PROPERTY))
    return data


def words(line):
    """The names of a line, which ends at a comment."""
    host_names = []
    for word in line.decode("utf-8", "replace").split():
        if word.startswith("#"):
            break
        host_names.append(word)
    return host_names


def names(data):
    return set(word for line in data.splitlines() for word in words(line))


def with_name(data, name):
    end = b"" if not data or data.endswith(b"\n") else b"\n"
    return data + end + name.encode("ascii") + b"\n"


def without_name(data, name):
    """Without the lines that have this name alone: that is the form in which it was added."""
    lines = [line for line in data.splitlines(True) if line.strip() != name.encode("ascii")]
    return b"".join(lines)


def recorded(path):
    """Name in YARN -> what was known of the node when it was excluded. A record that cannot be read is refused: whose lines they are is nowhere else."""
    if not os.path.exists(path):
        return {}
    with open(path, "rb") as handle:
        text = handle.read().decode("utf-8", "replace")
    try:
        nodes = json.loads(text)["nodes"]
    except (ValueError, KeyError, TypeError):
        nodes = None
    if not isinstance(nodes, dict):
        raise Unusable(
            "%s must be the JSON object that this project wrote, but is not. Restore it from a backup." % path
        )
    return nodes


def write_record(path, nodes):
    atomic_files.write_record(path, {"nodes": nodes} if nodes else None)


def write(path, data):
    """A link stays one, and so do owner and mode: the ResourceManager reads it."""
    with atomic_files.as_keeper(path):
        real = os.path.realpath(path)
        atomic_files.write_whole(real, data, **atomic_files.access_of(real))


def settle(params, checking):
    """What the module returns. The record is written before the line, and removed by `forgotten` alone: a run after a killed one knows that the host must come back."""
    node, state, record = params["node"], params["state"], params["record"] or RECORD
    nodes = recorded(record)
    lines = state in ("excluded", "included")
    path = place(params["conf_dir"]) if lines else record
    old_data = read(path) if lines else b""
    is_recorded, new_data, new_nodes = node in nodes, old_data, dict(nodes)
    if state == "excluded" and not is_recorded:
        new_nodes[node] = {"gpus": params["gpus"], "since": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())}
    if state == "excluded":
        if not is_recorded and node in names(old_data):
            raise Unusable(
                "%s has %s, which the site excluded itself, so it is left alone. Remove it there, or leave this host out."
                % (path, node)
            )
        if node not in names(old_data):
            new_data = with_name(old_data, node)
    elif state == "included" and is_recorded:
        new_data = without_name(old_data, node)
        if node in names(new_data):
            raise Unusable(
                "%s must have %s in the line that this project added and in no other, but the site changed it. Remove it there, and run again."
                % (path, node)
            )
    elif state == "forgotten":
        new_nodes.pop(node, None)
    if not checking:
        if new_nodes != nodes:
            write_record(record, new_nodes)
        if new_data != old_data:
            write(path, new_data)
    sides = [node + "\n" if node in names(data) else "" for data in (old_data, new_data)]  # no other line
    diff = {"before_header": path, "after_header": path, "before": sides[0], "after": sides[1]}
    return {"changed": new_nodes != nodes or new_data != old_data, "diff": diff}
