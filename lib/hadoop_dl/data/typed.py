"""JSON of a host as dataclasses: every value must have its field's form and stay within its limits; the error names the value that does not.

A field's type is its form: Literal, bool, another dataclass, a tuple or Mapping of these, or Annotated with Text, Sentence or Number. A
field that is only `str` or `int` is an error of this project's code, so no answer enters without a form.
"""

import dataclasses
import re
import reprlib
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from hadoop_dl.data.terminal import one_line

T = TypeVar("T")
Convert = Callable[[Any, str], Any]
UNIONS = (types.UnionType, typing.Union)
MOST = 1000  # entries of a list or mapping


class TypedError(ValueError):
    """A value that is missing or of another form: "'abc' for glibc, which must be a version, such as 2.17"."""


@dataclasses.dataclass(frozen=True)
class Text:
    """A text of printable characters, all of which match the pattern."""

    pattern: str
    words: str
    example: str
    longest: int = 200

    def convert(self, value: Any, place: str) -> Any:
        # Ansible's texts are of a class of their own.
        good = isinstance(value, str) and len(value) <= self.longest and value.isprintable()
        if not good or not re.fullmatch(self.pattern, value):
            raise refusal(value, place, f"{self.words}, such as {self.example}")
        return value


@dataclasses.dataclass(frozen=True)
class Sentence:
    """A text for people. It becomes one line of printable characters and is cut, not refused: a program's message may be anything."""

    longest: int = 500
    example: str = ""

    def convert(self, value: Any, place: str) -> str:
        if not isinstance(value, str):
            raise refusal(value, place, "text")
        return one_line(value, self.longest)


@dataclasses.dataclass(frozen=True)
class Number:
    """A whole number. `clipped`: one outside of the limits becomes the nearest limit."""

    least: int
    most: int
    clipped: bool = False
    example: int = 0

    def convert(self, value: Any, place: str) -> int:
        is_number = isinstance(value, int) and not isinstance(value, bool)  # true is a number for Python
        if not is_number or not (self.clipped or self.least <= value <= self.most):
            raise refusal(value, place, f"a number from {self.least} to {self.most}")
        return int(min(max(value, self.least), self.most))


def read(kind: type[T], value: Any) -> T:
    """The value as this dataclass. Keys that it has no field for are left out; a field without a default is required."""
    instance: T = converter(kind)(value, "")  # type: ignore[arg-type]  # mypy does not know that a type has a hash
    return instance


def fields(kind: type) -> dict[str, Any]:
    """The names of a dataclass's fields, with their types and forms."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def as_json(value: Any) -> Any:
    """The value as JSON has it: a dataclass is a mapping."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {name: as_json(item) for name, item in value.items()}
    return [as_json(item) for item in value] if isinstance(value, tuple) else value


@cache
def converter(hint: Any) -> Convert:
    """The function that turns JSON into this type."""
    arguments, origin = typing.get_args(hint), typing.get_origin(hint)
    if origin in UNIONS:
        inner = converter(next(argument for argument in arguments if argument is not types.NoneType))
        return lambda value, place: None if value is None else inner(value, place)
    if origin is typing.Annotated:
        convert: Convert = arguments[1].convert
        return convert
    if origin is typing.Literal:
        return _literal(arguments)
    if origin is tuple:
        return _tuple(converter(arguments[0]))
    if origin is Mapping:
        return _mapping(converter(arguments[0]), converter(arguments[1]))
    if hint is bool:
        return _boolean
    if dataclasses.is_dataclass(hint):
        return _dataclass(hint)
    raise TypeError(f"{hint} needs a form: Annotated with Text, Sentence or Number, or Literal.")


def _boolean(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        raise refusal(value, place, "true or false")
    return value


def _literal(choices: tuple[Any, ...]) -> Convert:
    def convert(value: Any, place: str) -> Any:
        if not isinstance(value, str) or value not in choices:
            raise refusal(value, place, f"one of {', '.join(choices)}")
        return value

    return convert


def _tuple(inner: Convert) -> Convert:
    def convert(value: Any, place: str) -> Any:
        if not isinstance(value, list) or len(value) > MOST:
            raise refusal(value, place, f"a list of at most {MOST} entries")
        return tuple(inner(item, f"{place}[{number}]") for number, item in enumerate(value))

    return convert


def _mapping(outer: Convert, inner: Convert) -> Convert:
    def convert(value: Any, place: str) -> Any:
        if not isinstance(value, dict) or len(value) > MOST:
            raise refusal(value, place, f"a mapping of at most {MOST} entries")
        return {outer(name, f"a key of {place}"): inner(item, f"{place}.{name}") for name, item in value.items()}

    return convert


def _dataclass(kind: Any) -> Convert:
    converters = {name: converter(hint) for name, hint in fields(kind).items()}
    required = {field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING}

    def convert(value: Any, place: str) -> Any:
        if not isinstance(value, dict):
            raise refusal(value, place or "everything", "a mapping")
        prefix = f"{place}." if place else ""
        missing = [name for name in converters if name in required and name not in value]
        if missing:
            raise TypedError(f"nothing for {prefix}{missing[0]}, which is required")
        return kind(
            **{
                name: convert_field(value[name], prefix + name)
                for name, convert_field in converters.items()
                if name in value
            }
        )

    return convert


class Shown(reprlib.Repr):
    """The start of any value, however long, deep or large."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother, self.maxdict, self.maxlist = 2, 40, 40, 2, 3

    def repr_int(self, x: int, level: int) -> str:
        # Python refuses to write a number of more than 4,300 digits.
        return super().repr_int(x, level) if x.bit_length() <= 128 else f"a number of {x.bit_length()} bits"

    def repr_instance(self, x: Any, level: int) -> str:
        return self.repr_str(str(x), level) if isinstance(x, str) else super().repr_instance(x, level)


def shown(value: Any) -> str:
    return one_line(Shown().repr(value), 80)


def refusal(value: Any, place: str, words: str) -> TypedError:
    return TypedError(f"{shown(value)} for {place}, which must be {words}")
