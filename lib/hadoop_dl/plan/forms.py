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


def called(form: str, example: str | None = None) -> str:
    """How a message calls a form, with an example: the input's, if it has one."""
    row = table()["forms"][form]
    words = f', such as "{example or row["example"]}"' if row["example"] != row["accepted"] else ""
    return f"{row['accepted']}{words}"


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


def convert(option: Input, value: Any) -> Any:
    """The value with its type; Refused says what is accepted instead."""
    if option.limits.get("none") and value == "none":
        return value
    checked = CONVERTERS[option.type](option, value)
    choices = option.spec.get("choices")
    if choices and any(entry not in choices for entry in (checked if isinstance(checked, list) else [checked])):
        raise Refused(accepted(option), value)
    return checked


def accepted(option: Input) -> str:
    """The values that an input accepts, in the words of a message."""
    choices, form = option.spec.get("choices"), None if option.type == "dict" else option.limits.get("form")
    words_of_form = called(form, option.limits.get("example")) if form else "text in quotes"
    entry = join_words([text or '""' for text in choices]) if choices else words_of_form
    once = "" if option.limits.get("repeats") else " without duplicates"
    lowest, highest = option.limits.get("min"), option.limits.get("max")
    words = {
        "bool": "true or false",
        "int": f"a whole number from {lowest} to {highest}" if lowest is not None else "a whole number",
        "path": entry if form or choices else "an absolute path",
        "dict": mapping_words(option),
        "list": f"a list{once}, each entry {entry}",
        "request": 'the name of a stack, or constraints such as {tensorflow: "1.15", python: "2.7"}',
        "batch": "a whole number of hosts from 1, or a share from 1% to 100%",
        "canary": "a number of hosts, a share such as 10%, or names of hosts",
        "parts": f"some of {', '.join(table()['parts'])}, as a list or with commas",
    }
    if option.type == "list" and option.spec.get("options"):
        keys = ", ".join(sorted(option.spec["options"]))
        words["list"] = f"a list of mappings with the keys {keys}{once}"
    return words.get(option.type, entry) + (", or none" if option.limits.get("none") else "")


def mapping_words(option: Input) -> str:
    options, keys, values = option.spec.get("options"), option.limits.get("keys"), option.limits.get("values")
    if options:
        return f"a mapping with the keys {', '.join(sorted(options))}"
    if option.limits.get("form") == "archive":
        return "a mapping {file: …, sha256: …}"
    if not keys:
        return "a mapping"
    to = {"archive": "{file: …, sha256: …}", "text": "text or a number"}
    return f"a mapping from {called(keys)}, to {to.get(str(values)) or called(str(values))}"


def join_words(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]


def to_bool(option: Input, value: Any) -> bool:
    text = str(value).lower() if isinstance(value, (bool, int, str)) else ""
    if text not in TRUE + FALSE:
        raise Refused(accepted(option), value)
    return text in TRUE


def to_int(option: Input, value: Any) -> int:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole and not (isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,12}", value)):
        raise Refused(accepted(option), value)
    number = int(value)
    if number < option.limits.get("min", number) or number > option.limits.get("max", number):
        raise Refused(accepted(option), value)
    return number


def to_text(option: Input, value: Any) -> str:
    """Text of the input's form. An empty one means that the input is not set, if its form does not require some."""
    form = option.limits.get("form")
    if value == "" and not (form and table()["forms"][form].get("required")):
        return ""
    return to_word(option, value)


def to_word(option: Input, value: Any) -> str:
    """One line of text of the input's form, which is not empty."""
    if not isinstance(value, str):
        raise Refused(accepted(option), value)
    if len(value) > LONGEST:
        raise Refused(f"text of at most {LONGEST} characters", value)
    check_line(value)
    form = option.limits.get("form")
    if form and not fits(form, value):
        raise Refused(accepted(option), value)
    return value


def to_path(option: Input, value: Any) -> str:
    text = to_text(option, value)
    if text and not text.startswith("/") and not option.limits.get("form"):
        raise Refused(accepted(option), value)
    return text


def to_list(option: Input, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Refused(accepted(option), value)
    options = option.spec.get("options")
    entries = [to_mapping(option, options, entry) if options else to_word(option, entry) for entry in value]
    if not option.limits.get("repeats") and any(entry in entries[:place] for place, entry in enumerate(entries)):
        raise Refused(accepted(option), value)
    return entries


def to_mapping(option: Input, options: Mapping[str, Any], value: Any) -> Json:
    """One mapping: all its keys are known, and those that are required are set."""
    required = {name for name, spec in options.items() if spec.get("required")}
    if not isinstance(value, Mapping) or not required <= set(value) <= set(options):
        raise Refused(accepted(option), value)
    try:
        return {name: convert(option.key(name, options[name]), item) for name, item in value.items()}
    except Refused as refused:
        raise Refused(f"{accepted(option)} ({refused.accepted})", refused.value) from refused


def to_dict(option: Input, value: Any) -> Json:
    if not isinstance(value, Mapping):
        raise Refused(accepted(option), value)
    check_plain(value)
    if option.spec.get("options"):
        return to_mapping(option, option.spec["options"], value)
    if option.limits.get("form") == "archive" and value:
        check_archive(option, value)
    keys, values = option.limits.get("keys"), option.limits.get("values")
    for name, item in value.items():
        if keys and not fits(keys, name):
            raise Refused(accepted(option), name)
        if values == "archive":
            check_archive(option, item)
        elif values and (isinstance(item, (Mapping, list)) or (values != "text" and not fits(values, str(item)))):
            raise Refused(accepted(option), item)
    return dict(value)


def check_archive(option: Input, archive: Any) -> None:
    """A file with its sha256, which may be missing if the role knows it."""
    required = {"file"} if option.limits.get("known") else {"file", "sha256"}
    if not isinstance(archive, Mapping) or not required <= set(archive) <= {"file", "sha256"}:
        raise Refused(accepted(option), archive)
    for name, text in archive.items():
        if not isinstance(text, str) or not fits("source" if name == "file" else "sha256", text):
            raise Refused(accepted(option), archive)


def to_request(option: Input, value: Any) -> Any:
    """A stack's name or constraints; which names there are is the resolver's to say."""
    if isinstance(value, str):
        if not fits("stack", value):
            raise Refused(accepted(option), value)
        return value
    if not isinstance(value, Mapping) or not value:
        raise Refused(accepted(option), value)
    for name, item in value.items():
        for text in item if isinstance(item, list) else [item]:
            if not isinstance(name, str) or not isinstance(text, (str, bool)) or len(str(text)) > 100:
                raise Refused(f"{accepted(option)}, with values in quotes", {str(name): item})
    check_plain(value)
    return dict(value)


def to_batch(option: Input, value: Any) -> Any:
    """A value that a play's serial accepts; 0 and less would mean all hosts at once."""
    match = re.fullmatch(r"([1-9][0-9]{0,5})(%?)", str(value), re.ASCII) if isinstance(value, (int, str)) else None
    if isinstance(value, bool) or match is None or (match[2] and int(match[1]) > 100):
        raise Refused(accepted(option), value)
    return value if match[2] else int(value)


def to_canary(option: Input, value: Any) -> Any:
    """A value that hadoop_dl.hosts.canaries takes, which also checks the hosts' names."""
    if value == "":
        return value
    names = to_names(option, str(value) if isinstance(value, int) and not isinstance(value, bool) else value)
    counted = isinstance(value, (int, str)) and re.fullmatch(r"[1-9][0-9]{0,5}|([1-9][0-9]?|100)%", str(value))
    if not counted and any(not fits("host", name) or name.isdigit() for name in names):
        raise Refused(accepted(option), value)
    return value


def to_parts(option: Input, value: Any) -> Any:
    if any(part not in table()["parts"] for part in to_names(option, value)):
        raise Refused(accepted(option), value)
    return value


def to_names(option: Input, value: Any) -> list[str]:
    """Names in a list, or in text with commas as -e gives them; each once, and at least one."""
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise Refused(accepted(option), value)
    if len(set(names)) < len(names):
        raise Refused(f"{accepted(option)}, without duplicates", value)
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
