"""One input and its value: which text, number, list or mapping it accepts, by its argument spec and by inputs.yml.

Pure functions: a value in, the converted value or Refused out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from hadoop_dl.data.compat import LOADER
from hadoop_dl.data.json_text import encoded

Json = dict[str, Any]
TABLE = Path(__file__).with_name("inputs.yml")
# The spellings that Ansible's filter `bool` converts; it takes every other text for false.
TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
LONGEST = 1000
SCALARS = (str, int, float)


class Secret(str):
    """A value from a vault: checked like any other, shown in no message."""


class Refused(ValueError):
    """A value that an input does not accept: what it accepts, and the part that it does not accept."""

    def __init__(self, accepted: str, value: Any) -> None:
        super().__init__(accepted)
        self.accepted, self.value = accepted, value


@cache
def table() -> Json:
    loaded: Json = yaml.load(TABLE.read_text(encoding="utf-8"), Loader=LOADER)  # noqa: S506 (both are safe loaders)
    return loaded


def limits() -> Mapping[str, Mapping[str, Any]]:
    rows: Mapping[str, Mapping[str, Any]] = table()["limits"]
    return rows


@dataclass(frozen=True)
class Input:
    """One variable: what its argument spec and inputs.yml accept."""

    name: str
    role: str
    spec: Mapping[str, Any]
    limits: Mapping[str, Any]

    @property
    def type(self) -> str:
        return str(self.spec.get("type", "str"))

    def key(self, name: str, spec: Mapping[str, Any]) -> Input:
        """The input that a key of this one's mappings is."""
        return Input(f"{self.name}.{name}", self.role, spec, limits().get(f"{self.name}.{name}", {}))


def fits(form: str, text: str) -> bool:
    """Whether the text has the form; the port of an address is one that exists."""
    if not re.fullmatch(table()["forms"][form]["pattern"], text, re.ASCII):
        return False
    try:
        return all(urlsplit(word).port != 0 for word in text.split() if "://" in word)
    except ValueError:
        return False


def called(form: str) -> str:
    """How a message calls a form, with its example."""
    row = table()["forms"][form]
    example = f', such as "{row["example"]}"' if row["example"] != row["accepted"] else ""
    return f"{row['accepted']}{example}"


def shown(value: Any) -> str:
    """A value as a message shows it: in one line, short, without passwords."""
    if value is None:
        return "empty (null)"
    if isinstance(value, Secret):
        return "a value that is not shown"
    text = encoded(value)
    text = re.sub(r"//[^/@\s]*@", "//…@", text)
    text = text if len(text) <= 80 else f"{text[:77]}…"
    return f"the number {text}" if isinstance(value, (int, float)) and not isinstance(value, bool) else text


def convert(given: Input, value: Any) -> Any:
    """The value with its type; Refused says what is accepted instead."""
    if given.limits.get("none") and value == "none":
        return value
    checked = CONVERTERS[given.type](given, value)
    choices = given.spec.get("choices")
    if choices and any(entry not in choices for entry in (checked if isinstance(checked, list) else [checked])):
        raise Refused(accepted(given), value)
    return checked


def accepted(given: Input) -> str:
    """The values that an input accepts, in the words of a message."""
    choices, form = given.spec.get("choices"), None if given.type == "dict" else given.limits.get("form")
    entry = join_words([text or '""' for text in choices]) if choices else called(form) if form else "text in quotes"
    once = "" if given.limits.get("repeats") else " without duplicates"
    lowest, highest = given.limits.get("min"), given.limits.get("max")
    words = {
        "bool": "true or false",
        "int": f"a whole number from {lowest} to {highest}" if lowest is not None else "a whole number",
        "path": entry if form or choices else "an absolute path",
        "dict": mapping_words(given),
        "list": f"a list{once}, each entry {entry}",
        "request": 'the name of a stack, or constraints such as {tensorflow: "1.15", python: "2.7"}',
        "batch": "a whole number of hosts from 1, or a share from 1% to 100%",
        "canary": "a number of hosts, a share such as 10%, or names of hosts",
        "parts": f"some of {', '.join(table()['parts'])}, as a list or with commas",
    }
    if given.type == "list" and given.spec.get("options"):
        keys = ", ".join(sorted(given.spec["options"]))
        words["list"] = f"a list of mappings with the keys {keys}{once}"
    return words.get(given.type, entry) + (", or none" if given.limits.get("none") else "")


def mapping_words(given: Input) -> str:
    options, keys, values = given.spec.get("options"), given.limits.get("keys"), given.limits.get("values")
    if options:
        return f"a mapping with the keys {', '.join(sorted(options))}"
    if given.limits.get("form") == "archive":
        return "a mapping {file: …, sha256: …}"
    if not keys:
        return "a mapping"
    to = {"archive": "{file: …, sha256: …}", "text": "text or a number"}
    return f"a mapping from {called(keys)}, to {to.get(str(values)) or called(str(values))}"


def join_words(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]


def to_bool(given: Input, value: Any) -> bool:
    text = str(value).lower() if isinstance(value, (bool, int, str)) else ""
    if text not in TRUE + FALSE:
        raise Refused(accepted(given), value)
    return text in TRUE


def to_int(given: Input, value: Any) -> int:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole and not (isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,12}", value)):
        raise Refused(accepted(given), value)
    number = int(value)
    if number < given.limits.get("min", number) or number > given.limits.get("max", number):
        raise Refused(accepted(given), value)
    return number


def to_text(given: Input, value: Any) -> str:
    """Text of the input's form. An empty one means that the input is not set, if its form does not require some."""
    form = given.limits.get("form")
    if value == "" and not (form and table()["forms"][form].get("required")):
        return ""
    return to_word(given, value)


def to_word(given: Input, value: Any) -> str:
    """One line of text of the input's form, which is not empty."""
    if not isinstance(value, str):
        raise Refused(accepted(given), value)
    if len(value) > LONGEST:
        raise Refused(f"text of at most {LONGEST} characters", value)
    check_line(value)
    form = given.limits.get("form")
    if form and not fits(form, value):
        raise Refused(accepted(given), value)
    return value


def to_path(given: Input, value: Any) -> str:
    text = to_text(given, value)
    if text and not text.startswith("/") and not given.limits.get("form"):
        raise Refused(accepted(given), value)
    return text


def to_list(given: Input, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Refused(accepted(given), value)
    options = given.spec.get("options")
    entries = [to_mapping(given, options, entry) if options else to_word(given, entry) for entry in value]
    if not given.limits.get("repeats") and any(entry in entries[:place] for place, entry in enumerate(entries)):
        raise Refused(accepted(given), value)
    return entries


def to_mapping(given: Input, options: Mapping[str, Any], value: Any) -> Json:
    """One mapping: all its keys are known, and those that are required are set."""
    required = {name for name, spec in options.items() if spec.get("required")}
    if not isinstance(value, Mapping) or not required <= set(value) <= set(options):
        raise Refused(accepted(given), value)
    try:
        return {name: convert(given.key(name, options[name]), item) for name, item in value.items()}
    except Refused as refused:
        raise Refused(f"{accepted(given)} ({refused.accepted})", refused.value) from refused


def to_dict(given: Input, value: Any) -> Json:
    if not isinstance(value, Mapping):
        raise Refused(accepted(given), value)
    check_plain(value)
    if given.spec.get("options"):
        return to_mapping(given, given.spec["options"], value)
    if given.limits.get("form") == "archive" and value:
        check_archive(given, value)
    keys, values = given.limits.get("keys"), given.limits.get("values")
    for name, item in value.items():
        if keys and not fits(keys, name):
            raise Refused(accepted(given), name)
        if values == "archive":
            check_archive(given, item)
        elif values and (isinstance(item, (Mapping, list)) or (values != "text" and not fits(values, str(item)))):
            raise Refused(accepted(given), item)
    return dict(value)


def check_archive(given: Input, one: Any) -> None:
    """A file with its sha256, which may be missing if the role knows it."""
    required = {"file"} if given.limits.get("known") else {"file", "sha256"}
    if not isinstance(one, Mapping) or not required <= set(one) <= {"file", "sha256"}:
        raise Refused(accepted(given), one)
    for name, text in one.items():
        if not isinstance(text, str) or not fits("source" if name == "file" else "sha256", text):
            raise Refused(accepted(given), one)


def to_request(given: Input, value: Any) -> Any:
    """A stack's name or constraints; which names there are is the resolver's to say."""
    if isinstance(value, str):
        if not fits("stack", value):
            raise Refused(accepted(given), value)
        return value
    if not isinstance(value, Mapping) or not value:
        raise Refused(accepted(given), value)
    for name, item in value.items():
        for text in item if isinstance(item, list) else [item]:
            if not isinstance(name, str) or not isinstance(text, (str, bool)) or len(str(text)) > 100:
                raise Refused(f"{accepted(given)}, with values in quotes", {str(name): item})
    check_plain(value)
    return dict(value)


def to_batch(given: Input, value: Any) -> Any:
    """A value that a play's serial accepts; 0 and less would mean all hosts at once."""
    match = re.fullmatch(r"([1-9][0-9]{0,5})(%?)", str(value), re.ASCII) if isinstance(value, (int, str)) else None
    if isinstance(value, bool) or match is None or (match[2] and int(match[1]) > 100):
        raise Refused(accepted(given), value)
    return value if match[2] else int(value)


def to_canary(given: Input, value: Any) -> Any:
    """A value that hadoop_dl.hosts.canaries takes, which also checks the hosts' names."""
    if value == "":
        return value
    names = to_names(given, str(value) if isinstance(value, int) and not isinstance(value, bool) else value)
    counted = isinstance(value, (int, str)) and re.fullmatch(r"[1-9][0-9]{0,5}|([1-9][0-9]?|100)%", str(value))
    if not counted and any(not fits("host", name) or name.isdigit() for name in names):
        raise Refused(accepted(given), value)
    return value


def to_parts(given: Input, value: Any) -> Any:
    if any(part not in table()["parts"] for part in to_names(given, value)):
        raise Refused(accepted(given), value)
    return value


def to_names(given: Input, value: Any) -> list[str]:
    """Names in a list, or in text with commas as -e gives them; each once, and at least one."""
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise Refused(accepted(given), value)
    if len(set(names)) < len(names):
        raise Refused(f"{accepted(given)}, without duplicates", value)
    return names


def check_line(text: str) -> None:
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise Refused("one line without control characters", text)


def check_plain(value: Any) -> None:
    """Refuse what no file of settings can hold: null, dates, keys that are no text, text of several lines."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            if not isinstance(name, str):
                raise Refused("a mapping whose keys are text in quotes", name)
            check_line(name)
            check_plain(item)
    elif isinstance(value, list):
        for item in value:
            check_plain(item)
    elif isinstance(value, str):
        check_line(value)
    elif not isinstance(value, SCALARS):
        raise Refused("a mapping or list of text, numbers, true and false", value)


CONVERTERS = {
    "bool": to_bool,
    "int": to_int,
    "str": to_text,
    "path": to_path,
    "list": to_list,
    "dict": to_dict,
    "request": to_request,
    "batch": to_batch,
    "canary": to_canary,
    "parts": to_parts,
}
