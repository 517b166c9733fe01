"""A stand-in for ssh: SITE/ssh, with ssh's arguments. SITE/site.json tells of each host what it answers, and whether it is hostile.

An honest host answers the readers from its recorded facts, modules from SITE/site.json, and runs what else it is told in a directory of its own. A
hostile host answers the same, as its attack changes it. SITE/asked.jsonl records what every host was asked, and with which options.

It starts for every task on every host, so it imports little: pathlib, subprocess, typing and the site's packages would take most of its time.
"""

from __future__ import annotations

import json
import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MARK = "of-a-hostile-host"  # in every text of a hostile host: nothing of it may reach another host
LONG = "9" * 5000
CURSOR = "\x1b[2J\x1b]0;of-a-hostile-host\x07\x9b2J\u202e"
MEGABYTE = 1 << 20


def read(path: str) -> Any:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def template(site: str) -> str:
    """What leaves SITE/evaluated where anything evaluates it."""
    return f"{MARK} {{{{ lookup('ansible.builtin.pipe', 'touch {site}/evaluated') }}}}"


def path(site: str) -> str:
    return f"{'../' * 40}{site.lstrip('/')}/outside/{MARK}"


def leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same JSON with each leaf changed."""
    if isinstance(value, dict):
        return {name: leaves(item, change) for name, item in value.items()}
    if isinstance(value, list):
        return [leaves(item, change) for item in value]
    return change(value)


def texts(text: str) -> Callable[[Any], Any]:
    return lambda leaf: text if isinstance(leaf, str) else leaf


def result_keys(answer: Any, site: str) -> Any:
    """Every key that Ansible gives a meaning, as far as a host may choose its value."""
    variables = {
        "ansible_ssh_executable": f"{site}/outside/{MARK}",
        "ansible_ssh_common_args": f"-o ProxyCommand='touch {site}/evaluated'",
        "report_directory": f"{site}/outside",
        "verify_report_directory": f"{site}/outside",
    }
    hosts = read(f"{site}/site.json")["hosts"]
    honest = next(name for name in reversed(hosts) if not hosts[name].get("attack"))
    return answer | {
        "add_host": {"host_name": honest, "groups": [MARK], "host_vars": variables},
        "add_group": MARK,
        "parent_groups": ["all"],
        "ansible_facts": {**variables, "ansible_host": MARK},
        "ansible_stats": {"data": 5},
        "results": [5],
        "invocation": MARK,
        "warnings": [MARK],
        "deprecations": [{"msg": template(site)}],
        "diff": [5],
        "_ansible_notify": [MARK],
        "_ansible_delegated_vars": {"ansible_delegated_host": honest, "ansible_host": MARK},
        "_ansible_item_label": template(site),
        "_ansible_no_log": 1,
    }


def printed(answer: Any, site: str) -> Any:
    """What Ansible prints of a success, as templates that move the cursor."""
    text = CURSOR + template(site)
    sides = dict.fromkeys(("before", "after", "before_header", "after_header"), text)
    shown = {"msg": text, "warnings": [text], "diff": [sides | {"after": text + "2"}]}
    return answer | shown | {"changed": True, "results": [shown], "exception": text}


ATTACKS: dict[str, Callable[[Any, str], Any]] = {
    "keys": result_keys,
    "failed": lambda answer, site: answer | {"failed": True, "unreachable": True, "msg": template(site)},
    "terminal": lambda answer, site: (
        answer
        | {"failed": True, "msg": CURSOR, "exception": CURSOR, "warnings": [CURSOR], "deprecations": [{"msg": CURSOR}]}
    ),
    "printed": printed,
    "skipped": lambda answer, site: answer | {"skipped": 1, "failed_when_result": 0, "msg": template(site)},
    "templates": lambda answer, site: leaves(answer, texts(template(site))) | {template(site): template(site)},
    "options": lambda answer, site: leaves(answer, texts(f"-oProxyCommand=touch {site}/evaluated;{MARK}")),
    "paths": lambda answer, site: leaves(answer, texts(path(site))),
    "numbers": lambda answer, _: leaves(answer, lambda leaf: "LONG" if isinstance(leaf, str | int) else leaf),
    "types": lambda answer, _: leaves(answer, lambda leaf: [MARK] if leaf is None else {MARK: leaf}),
    "huge": lambda answer, _: leaves(answer, texts(MARK * (MEGABYTE // 8))) | {"more": MARK * (2 * MEGABYTE // 16)},
    "nested": lambda _answer, _site: None,
    "broken": lambda _answer, _site: None,
    "late": lambda _answer, site: {"late": template(site)},
}


def respond(name: str, answer: Any, site: str) -> int:
    """Print what the attack makes of an honest answer; the exit status of ssh."""
    if name == "broken":
        print(template(site), file=sys.stderr)
        return 255
    if name == "nested":
        print('{"facts": ' + '{"a": ' * 20000 + "1" + "}" * 20001)
        return 0
    print(json.dumps(ATTACKS[name](answer, site)).replace('"LONG"', LONG))
    if name == "terminal":
        print(CURSOR)  # Ansible warns of what follows the JSON, and shows it
    return 0


def arguments(given: list[str]) -> tuple[list[str], str, str]:
    """ssh's options, the host, and the command."""
    options, words = [], list(given)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        options.append(f"{option} {words.pop(0)}" if option in ("-o", "-O", "-p", "-l", "-i") else option)
    options = [option for option in options if "ControlPath=" not in option]  # one for each host
    return options, words[0], " ".join(words[1:])


def question(script: str) -> tuple[str, Any]:
    """What the host is asked: a reader, a module with its arguments, or a command ("")."""
    if script.rstrip().rpartition("\n")[2].startswith("module.main("):
        readers = {"report_reader": "report", "gpu_check.acceptance": "accepted"}
        return next((kind for name, kind in readers.items() if f"('{name}', " in script), "facts"), None
    module = re.search(r"ansible(?:_collections)?[.\w]*\.modules\.(\w+)", script)
    match = re.search(r"^\s*ANSIBALLZ_PARAMS = (.+)$", script, re.MULTILINE)
    if not module or not match:
        return "", None
    # JSON in ASCII as Python writes a text
    module_arguments = json.loads(match[1][1:-1].encode("ascii").decode("unicode_escape"))["ANSIBLE_MODULE_ARGS"]
    return module[1], {key: value for key, value in module_arguments.items() if not key.startswith("_ansible_")}


def main(site: str, argv: list[str]) -> int:
    options, host, command = arguments(argv)
    script = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
    kind, parameters = question(script.decode(errors="replace"))
    content = read(f"{site}/site.json")
    entry = content["hosts"].get(host, {})
    record = {"host": host, "options": options, "asked": kind or command, "arguments": parameters}
    with open(f"{site}/asked.jsonl", "a") as record_file:
        record_file.write(json.dumps(record) + "\n")
    attack = entry.get("attack") if not kind or kind not in content["spared"] else None
    if kind in ("facts", "report"):
        answer = entry["facts"] if kind == "facts" else {"facts": entry["facts"], **content["report"]}
    elif kind == "accepted":
        answer = content[kind]
    elif kind:
        answer = {"changed": False, **content["modules"].get(kind, content["else"])}
    elif attack == "broken":
        answer = None
    else:
        home = f"{site}/hosts/{host}"
        os.makedirs(home, exist_ok=True)
        os.chdir(home)
        input_file = os.memfd_create("input")
        os.write(input_file, script)
        os.lseek(input_file, 0, os.SEEK_SET)
        os.dup2(input_file, 0)
        os.execve("/bin/sh", ["/bin/sh", "-c", command], {**os.environ, "HOME": home, "TMPDIR": home})  # noqa: S606 (ssh does)
    if attack:
        return respond(attack, answer, site)
    print(json.dumps(answer))
    return 0
