"""Formats of files with keys: from bytes to bytes, and everything but the key keeps them. Python 2.7 and 3, standard library only.

XML and CFG are Hadoop's, SHELL is cdsw.conf (KEY="value", the last line counts), JSON has keys of two levels (runtimes.nvidia).
"""

import collections
import json
import os
import re

from . import hadoop_files
from .hadoop_files import Unusable

LINE = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$")
PLAIN = re.compile(r"^[\w./:-]*$")

# values(data): key -> value. raw(data, key): the bytes of a key as text, None if it has none. with_raw(data, key, raw): None removes the key.
# written(key, value): as the file has it. same(value, other). empty: a new file; None: the file must exist. is_copied: the text before is recorded,
# because a change rewrites the file.
Format = collections.namedtuple("Format", ["values", "raw", "with_raw", "written", "same", "empty", "is_copied"])


def equal(value, other):
    return value == other


def shell_lines(data):
    return [(match.group(1), match.group(0), match.group(2)) for match in map(LINE.match, data.splitlines()) if match]


def shell_values(data):
    """The values without quotes and remarks."""
    lines = shell_lines(data.decode("utf-8"))
    return dict((key, re.sub(r"\s+#.*$", "", value).strip().strip("\"'")) for key, _, value in lines)


def shell_raw(data, key):
    return dict((name, line) for name, line, _ in shell_lines(data.decode("utf-8"))).get(key)


def shell_with(data, key, raw):
    """The line takes the place of the last one of the key; None removes every line of the key."""
    lines = data.decode("utf-8").splitlines()
    places = [place for place, line in enumerate(lines) if LINE.match(line) and LINE.match(line).group(1) == key]
    if raw is None:
        lines = [line for place, line in enumerate(lines) if place not in places]
    elif places:
        lines[places[-1]] = raw
    else:
        lines.append(raw)
    return ("\n".join(lines) + "\n").encode("utf-8")


def shell_written(key, value):
    if not PLAIN.match(value):
        raise Unusable("set %s to a plain value, not to %s" % (key, value))
    return '%s="%s"' % (key, value)


def parsed(data):
    try:
        content = json.loads(data.decode("utf-8") or "{}", object_pairs_hook=collections.OrderedDict)
    except ValueError as error:
        raise Unusable("be JSON, but is not: %s" % error)
    if not isinstance(content, dict) or not isinstance(content.get("runtimes", {}), dict):
        raise Unusable("be JSON, a mapping, but it or its runtimes is none")
    return content


def json_values(data):
    values = {}
    for name, content in parsed(data).items():
        if isinstance(content, dict):
            values.update(("%s.%s" % (name, key), value) for key, value in content.items())
        else:
            values[name] = content
    return values


def json_raw(data, key):
    value = json_values(data).get(key)
    return None if value is None else json.dumps(value)


def json_with(data, key, raw):
    content, (section, _, name) = parsed(data), key.partition(".")
    keys = content.setdefault(section, collections.OrderedDict())
    if raw is None:
        keys.pop(name, None)
    else:
        keys[name] = json.loads(raw)
    if not keys:
        del content[section]
    return (json.dumps(content, indent=4, separators=(",", ": ")) + "\n").encode("utf-8")


def program(runtime):
    """What a runtime of Docker starts: the program without its directory, and args or runtimeArgs."""
    if not isinstance(runtime, dict):
        return runtime
    return os.path.basename(str(runtime.get("path", ""))), runtime.get("args") or runtime.get("runtimeArgs") or []


XML = Format(
    hadoop_files.xml_values,
    hadoop_files.xml_raw,
    hadoop_files.xml_with,
    lambda key, value: hadoop_files.element(value),
    equal,
    hadoop_files.EMPTY,
    False,
)
CFG = Format(
    hadoop_files.cfg_values,
    hadoop_files.cfg_raw,
    hadoop_files.cfg_with,
    hadoop_files.assignment,
    equal,
    None,
    False,
)
SHELL = Format(shell_values, shell_raw, shell_with, shell_written, equal, None, False)
JSON = Format(
    json_values,
    json_raw,
    json_with,
    lambda key, value: json.dumps(value),
    lambda value, other: program(value) == program(other),
    b"{}\n",
    True,
)


def of(path):
    return {".xml": XML, ".cfg": CFG, ".json": JSON}.get(os.path.splitext(path)[1], SHELL)
