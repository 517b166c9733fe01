"""TensorBoard as services of edge nodes: what each entry of tensorboard_services requires of its host and of the environment."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hadoop_dl.data.locks import Lock
from hadoop_dl.plan.forms import shown
from hadoop_dl.plan.model import Host

PROJECTS = {"tensorboard", "tensorflow-tensorboard"}  # the second one: until TensorFlow 1.4


def services(host: Host) -> Sequence[Mapping[str, Any]]:
    entries: Sequence[Mapping[str, Any]] = host.variables.get("tensorboard_services") or []
    return entries


def problems(host: Host, lock: Lock | None) -> Iterator[str]:
    """Why the services cannot run there."""
    entries = services(host)
    if entries and lock and not PROJECTS & {entry.project for entry in lock.entries}:
        yield f"tensorboard_services requires TensorBoard, but {lock.stack} has none. Remove the entries, or request a stack that has it."
    for key in ("name", "port"):
        twice = [str(value) for value, number in Counter(service[key] for service in entries).items() if number > 1]
        if twice:
            yield f"tensorboard_services must have each {key} once, but has {', '.join(twice)} several times. Give each entry its own."
    for service in entries:
        yield from (f"tensorboard_services ({service['name']}) {text}" for text in missing(service, host))


def missing(service: Mapping[str, Any], host: Host) -> Iterator[str]:
    host_answers = host.known.named
    user, keytab = service["user"], service.get("keytab")
    if host_answers and host_answers.accounts.get(user, ...) is None:
        yield f"requires the account {user}, but the host has none. Create it, or name another one."
    if host_answers and keytab and host_answers.paths.get(keytab) is False:
        yield f"requires the keytab {shown(keytab)}, but the host has none. Put it there, or correct the path."
    if bool(keytab) != bool(service.get("principal")):
        yield "requires principal and keytab together, or none of them, but has one. Set the other."
    elif host.known.kerberos and host.known.kerberos.secure and not keytab and not service["directory"].startswith("/"):
        yield "has a directory in HDFS, which requires Kerberos, but no keytab. Set principal and keytab."
