"""JSON as dataclasses: every value must have its field's type; the error names the value that does not."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
Convert = Callable[[Any, str], Any]
NAMES = {str: "text", int: "a number", bool: "true or false"}


class TypedError(ValueError):
    """A value that is missing or of another type; the message names its place and the required type."""


def read(kind: type[T], value: Any) -> T:
    """The value as this dataclass. Keys that it has no field for are left out; a field without a default is required."""
    found: T = converter(kind)(value, "")  # type: ignore[arg-type]  # mypy does not know that a type has a hash
    return found


def fields(kind: type) -> dict[str, Any]:
    """The names of a dataclass's fields, with their types."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def as_json(value: Any) -> Any:
    """The value as JSON has it: a dataclass is a mapping."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {name: as_json(one) for name, one in value.items()}
    return [as_json(one) for one in value] if isinstance(value, tuple) else value


@cache
def converter(hint: Any) -> Convert:
    """What turns JSON into this type."""
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        inner = converter(next(one for one in arguments if one is not types.NoneType))
        return lambda value, place: None if value is None else inner(value, place)
    if typing.get_origin(hint) is tuple:
        return _tuple(converter(arguments[0]))
    if typing.get_origin(hint) is Mapping:
        return _mapping(converter(arguments[1]))
    return _dataclass(hint) if dataclasses.is_dataclass(hint) else _plain(hint)


def _plain(kind: type) -> Convert:
    def convert(value: Any, place: str) -> Any:
        # Ansible's texts are of a class of their own, and true is a number for Python.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise TypedError(f"{place} must be {NAMES[kind]} but is {shown(value)}")
        return value

    return convert


def _tuple(inner: Convert) -> Convert:
    def convert(value: Any, place: str) -> Any:
        if not isinstance(value, list):
            raise TypedError(f"{place} must be a list but is {shown(value)}")
        return tuple(inner(one, f"{place}[{number}]") for number, one in enumerate(value))

    return convert


def _mapping(inner: Convert) -> Convert:
    def convert(value: Any, place: str) -> Any:
        if not isinstance(value, dict):
            raise TypedError(f"{place} must be a mapping but is {shown(value)}")
        return {name: inner(one, f"{place}.{name}") for name, one in value.items()}

    return convert


def _dataclass(kind: Any) -> Convert:
    converters = {name: converter(hint) for name, hint in fields(kind).items()}
    required = {field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING}

    def convert(value: Any, place: str) -> Any:
        if not isinstance(value, dict):
            raise TypedError(f"{place or 'it'} must be a mapping but is {shown(value)}")
        prefix = f"{place}." if place else ""
        missing = [name for name in converters if name in required and name not in value]
        if missing:
            raise TypedError(f"{prefix}{missing[0]} is missing")
        return kind(**{name: one(value[name], prefix + name) for name, one in converters.items() if name in value})

    return convert


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
