"""Inputs: every variable that a site may set, checked once, before any task sees it.

What is accepted is written in the roles' argument_specs and, beyond types and choices, in inputs.yml. Pure functions:
values in, converted values and sentences out.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from hadoop_dl.data.compat import LOADER
from hadoop_dl.data.cuda_packages import archive_of
from hadoop_dl.data.json_text import encoded

Json = dict[str, Any]
TABLE = Path(__file__).with_suffix(".yml")
# The spellings that Ansible's filter `bool` converts; it takes every other text for false.
TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
LONGEST = 1000
SCALARS = (str, int, float)


class Secret(str):
    """A value from a vault: checked like any other, shown in no message."""


@dataclass(frozen=True)
class FailedTemplate:
    """The value of an input whose template failed, or that could not be decrypted."""

    reason: str


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


@dataclass
class Checked:
    """The converted values of a host's inputs, and what is wrong with the others."""

    values: Json = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


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
    found: Mapping[str, Mapping[str, Any]] = table()["limits"]
    return found


@cache
def role_options(repository: Path, role: str) -> Mapping[str, Mapping[str, Any]]:
    """A role's inputs by name, of all its entry points."""
    path = repository / "roles" / role / "meta" / "argument_specs.yml"
    specs = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)  # noqa: S506 (both are safe loaders)
    return {
        name: spec
        for entry in specs["argument_specs"].values()
        for name, spec in sorted(entry.get("options", {}).items())
    }


@cache
def all_inputs(repository: Path) -> Mapping[str, Input]:
    """Every input of the project by name: those of a site, then those of every role but internal ones (_cuda_package)."""
    found = {name: Input(name, "", spec, limits().get(name, {})) for name, spec in table()["site"].items()}
    for path in sorted(repository.glob("roles/[a-z]*/meta/argument_specs.yml")):
        role = path.parent.parent.name
        for name, spec in role_options(repository, role).items():
            found.setdefault(name, Input(name, role, spec, limits().get(name, {})))
    return found


def check(variables: Mapping[str, Any], repository: Path) -> Checked:
    """Check every input that is set. A template that is still one is a value that the playbooks compute later."""
    checked = Checked()
    known = all_inputs(repository)
    for name in known.keys() & variables.keys():
        value = variables[name]
        if isinstance(value, FailedTemplate):
            checked.problems.append(f"{name} cannot be evaluated: {value.reason}. Correct it in the inventory.")
        elif not is_template(value):
            try:
                checked.values[name] = convert(known[name], value)
            except Refused as refused:
                checked.problems.append(sentence(known[name], refused))
    for name, reason in table()["refused"].items():
        if isinstance(variables.get(name), (str, FailedTemplate)) and not is_template(variables[name]):
            checked.problems.append(f"{name} is not an input and must not be set. {reason}")
    checked.problems += contradictions(checked.values, repository)
    checked.problems.sort()
    for name in variables:
        nearest = misspelt(name, repository)
        if nearest:
            checked.warnings.append(f"{name} is not an input of this project and is not used; {nearest} is one.")
    return checked


def is_template(value: Any) -> bool:
    return isinstance(value, str) and ("{{" in value or "{%" in value)


@cache
def misspelt(name: str, repository: Path) -> str:
    """The input that a variable's name nearly is, if its first word is that of an input; "" for other names."""
    known = all_inputs(repository)
    if name in known or name in table()["refused"] or name.startswith("_"):
        return ""
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.9)
    return nearest[0] if nearest else ""


def sentence(given: Input, refused: Refused) -> str:
    value = "a value that is not shown" if given.limits.get("secret") else shown(refused.value)
    return (
        f"{given.name} must be {refused.accepted}, but is {value}. Correct it in the inventory or on the command line."
    )


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
    if choices and any(one not in choices for one in (checked if isinstance(checked, list) else [checked])):
        raise Refused(accepted(given), value)
    return checked


def accepted(given: Input) -> str:
    """What an input accepts, in the words of a message."""
    choices, form = given.spec.get("choices"), given.limits.get("form")
    one = join_words(choices) if choices else (table()["forms"][form]["accepted"] if form else "text in quotes")
    if form and given.type in ("str", "list") and form not in ("controller_path", "root"):
        one += f', such as "{table()["forms"][form]["example"]}"'
    lowest, highest = given.limits.get("min"), given.limits.get("max")
    words = {
        "bool": "true or false",
        "int": f"a whole number from {lowest} to {highest}" if lowest is not None else "a whole number",
        "path": one if form or choices else "an absolute path",
        "dict": "a mapping",
        "list": f"a list, each entry {one}",
        "request": 'the name of a stack, or constraints such as {tensorflow: "1.15", python: "2.7"}',
        "batch": "a whole number of hosts from 1, or a share from 1% to 100%",
    }
    if given.type == "list" and given.spec.get("options"):
        keys = ", ".join(sorted(given.spec["options"]))
        words["list"] = f"a list of mappings with the keys {keys}"
    if given.type == "dict" and given.limits.get("values"):
        words["dict"] = "a mapping of versions or names to {file: …, sha256: …}, all of it text in quotes"
    return words.get(given.type, one) + (", or none" if given.limits.get("none") else "")


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
    if not isinstance(value, str):
        raise Refused(accepted(given), value)
    if given.limits.get("lines"):
        return value
    if len(value) > LONGEST:
        raise Refused(f"text of at most {LONGEST} characters", value)
    check_line(value)
    form = given.limits.get("form")
    if form and value and not re.fullmatch(table()["forms"][form]["pattern"], value, re.ASCII):
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
    try:
        if options:
            return [to_mapping(given, options, one) for one in value]
        if given.spec.get("elements") == "str":
            return [to_text(given, one) for one in value]
    except Refused as refused:
        raise Refused(accepted(given), refused.value) from refused
    check_plain(value)
    return list(value)


def to_mapping(given: Input, options: Mapping[str, Any], value: Any) -> Json:
    """One mapping of a list: all its keys are known, and those that are required are set."""
    required = {name for name, spec in options.items() if spec.get("required")}
    if not isinstance(value, Mapping) or not required <= set(value) <= set(options):
        raise Refused(accepted(given), value)
    return {name: convert(given.key(name, options[name]), one) for name, one in value.items()}


def to_dict(given: Input, value: Any) -> Json:
    if not isinstance(value, Mapping):
        raise Refused(accepted(given), value)
    check_plain(value)
    if given.limits.get("values") == "archive":
        required = {"file"} if given.limits.get("known") else {"file", "sha256"}
        for one in value.values():
            good = (
                isinstance(one, Mapping) and required <= set(one) <= {"file", "sha256"} and isinstance(one["file"], str)
            )
            if not good or not re.fullmatch(r"[0-9a-f]{64}", str(one.get("sha256", "0" * 64))):
                raise Refused(accepted(given), one)
    return dict(value)


def to_request(given: Input, value: Any) -> Any:
    """A stack's name or constraints; which names there are is the resolver's to say."""
    if isinstance(value, str):
        if not re.fullmatch(r"[A-Za-z0-9][\w.+-]{0,99}", value, re.ASCII):
            raise Refused(accepted(given), value)
        return value
    if not isinstance(value, Mapping) or not value:
        raise Refused(accepted(given), value)
    for name, one in value.items():
        for text in one if isinstance(one, list) else [one]:
            if not isinstance(name, str) or not isinstance(text, (str, bool)) or len(str(text)) > 100:
                raise Refused(f"{accepted(given)}, with values in quotes", {str(name): one})
    check_plain(value)
    return dict(value)


def to_batch(given: Input, value: Any) -> Any:
    """What a play's serial accepts; 0 and less would mean all hosts at once."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})(%?)", str(value), re.ASCII) if isinstance(value, (int, str)) else None
    if isinstance(value, bool) or found is None or (found[2] and int(found[1]) > 100):
        raise Refused(accepted(given), value)
    return value if found[2] else int(value)


def check_line(text: str) -> None:
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise Refused("one line without control characters", text)


def check_plain(value: Any) -> None:
    """Refuse what no file of settings can hold: null, dates, keys that are no text, text of several lines."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            if not isinstance(name, str):
                raise Refused("a mapping whose keys are text in quotes", name)
            check_line(name)
            check_plain(one)
    elif isinstance(value, list):
        for one in value:
            check_plain(one)
    elif isinstance(value, str):
        check_line(value)
    elif not isinstance(value, SCALARS):
        raise Refused("a mapping or list of text, numbers, true and false", value)


def to_raw(given: Input, value: Any) -> Any:
    check_plain(value)
    return value


CONVERTERS = {
    "bool": to_bool,
    "int": to_int,
    "str": to_text,
    "path": to_path,
    "list": to_list,
    "dict": to_dict,
    "raw": to_raw,
    "request": to_request,
    "batch": to_batch,
}


@cache
def open_archives(repository: Path) -> Mapping[str, Json]:
    """The archives of cuDNN that the role knows, by VERSION/CUDA; CUDA may be a major number."""
    file = repository / "roles" / "cudnn" / "vars" / "archives.yml"
    found: Mapping[str, Json] = yaml.safe_load(file.read_text(encoding="utf-8"))["__cudnn_open_archives"]
    return found


def lacks_archive(item: Any, archives: Mapping[str, Json], known: Mapping[str, Json]) -> bool:
    """Whether neither the site nor, for cuDNN, the role names the file and its sha256."""
    if isinstance(item, str):
        return item not in archives
    return not {"file", "sha256"} <= archive_of(item["version"], item["cuda"], archives, known).keys()


def contradictions(values: Mapping[str, Any], repository: Path) -> list[str]:
    """Inputs of which each is right, and which cannot be right together."""
    found = []
    toolkits, default = values.get("cuda_versions"), values.get("cuda_default")
    if default and isinstance(toolkits, list) and default not in toolkits:
        found.append(f"cuda_default must be one of cuda_versions ({', '.join(toolkits) or 'none'}), but is {default}.")
    if values.get("nvidia_driver_source") == "runfile" and values.get("nvidia_driver_version", "none") != "none":
        unset = [name for name in ("nvidia_driver_runfile", "nvidia_driver_runfile_sha256") if not values.get(name)]
        if unset:
            found.append(f"nvidia_driver_source: runfile requires {' and '.join(unset)}, but none is set.")
    if values.get("nvidia_driver_build") == "precompiled" and values.get("nvidia_driver_module") == "open":
        found.append("nvidia_driver_build: precompiled requires nvidia_driver_module: proprietary, but it is open.")
    if values.get("nvidia_driver_signing_key") and not values.get("nvidia_driver_signing_certificate"):
        found.append("nvidia_driver_signing_key requires nvidia_driver_signing_certificate, but none is set.")
    for role, source, archives in (
        ("cuda", "runfile", "cuda_runfiles"),
        ("cudnn", "tarball", "cudnn_tarballs"),
        ("nccl", "tarball", "nccl_tarballs"),
    ):
        versions = values.get(f"{role}_versions")
        if values.get(f"{role}_source") != source or not isinstance(versions, list):
            continue
        known = open_archives(repository) if role == "cudnn" else {}
        lacking = [one for one in versions if lacks_archive(one, values.get(archives, {}), known)]
        missing = [one if isinstance(one, str) else one["version"] for one in lacking]
        if missing:
            found.append(f"{role}_source: {source} requires an entry of {archives} for {', '.join(missing)}.")
    return found
