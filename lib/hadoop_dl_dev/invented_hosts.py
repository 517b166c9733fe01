"""Invented hosts for tests and benchmarks. Everything that is not given of a host's answer is empty."""

import dataclasses
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from hadoop_dl.data import typed
from hadoop_dl.data.host_facts import HostFacts, read_facts
from hadoop_dl.plan.model import Host, Json, Plan, host_of


def answer(parts: Mapping[str, Any] | None = None) -> Json:
    """The reader's answer for a host with these facts."""
    filled: Json = completed(HostFacts, dict(parts or {}))
    return filled


def host(name: str, groups: Iterable[str], variables: Mapping[str, Any], parts: Mapping[str, Any] | None) -> Host:
    """A host that answered this, or that did not answer (None)."""
    facts = None if parts is None else answer(parts)
    return host_of(name, groups, variables, facts)


def facts(parts: Mapping[str, Any] | None = None) -> HostFacts:
    return read_facts(answer(parts))


def altered(host: Host, change: Callable[[Json], Any]) -> Host:
    """The host after a change of its answer."""
    content = typed.as_json(host.known)
    change(content)
    return replace(host, facts=read_facts(content))


def after(host: Host, plan: Plan) -> Host:
    """The host as it reads once everything that the plan names was done."""
    part = plan.hosts[host.name]
    environment = part["environment"]
    environments = [environment, *(extra["environment"] for extra in part["additional"])]
    state = {
        "current": environment or None,
        "environments": {name: {"problem": None} for name in environments if name},
        "receipts": {name: {"digest": digest, "problem": None} for name, digest in part["digests"].items()},
    }
    return altered(host, lambda content: content.update(deeplearning=state))


def completed(hint: Any, value: Any) -> Any:
    """The value with everything that its type requires and that is missing: nothing, in its form."""
    if typing.get_origin(hint) in typed.UNIONS:
        inner = next(item for item in typing.get_args(hint) if item is not type(None))
        return None if value is None else completed(inner, value)
    if dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
        hints = typed.fields(typing.cast(type, hint))
        required = {field.name for field in dataclasses.fields(hint) if field.default is dataclasses.MISSING}
        members = {name: completed(hints[name], value[name]) for name in hints if name in value}
        return {name: empty(hints[name]) for name in hints if name in required} | members
    if typing.get_origin(hint) is tuple:
        return [completed(typing.get_args(hint)[0], item) for item in value]
    return value


def empty(hint: Any) -> Any:
    if typing.get_origin(hint) in typed.UNIONS:
        return None
    if dataclasses.is_dataclass(hint):
        return completed(hint, {})
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Annotated, typing.Literal):
        return arguments[0] if origin is typing.Literal else arguments[1].example
    return {tuple: [], Mapping: {}, bool: False}[origin or hint]
