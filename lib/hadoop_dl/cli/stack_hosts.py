"""scripts/stack resolve for real hosts: the plan answers, from the facts in files, or from what the hosts of an inventory answer now.

The plan decides here as it does for a run (hadoop_dl.plan), so both give the same answer. Nothing is changed on any host.
"""

import json
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible.module_utils.hadoop_dl_host.text_columns import columns

from hadoop_dl.cli.ansible_runs import REPOSITORY, missing_inventory, run
from hadoop_dl.hosts.host_script import LARGEST, NoAnswer, parse
from hadoop_dl.plan import make_plan
from hadoop_dl.plan.model import Host, host_of
from hadoop_dl.resolver import Misuse

Json = dict[str, Any]
# What every site decides and no stack depends on.
SITE = {"mirror_url": "http://mirror.example.com:8900", "nvidia_license_accepted": True}
ANY = {"tensorflow": ">=1"}
HOW = "Write it with: ansible HOST -i inventories/SITE --become -m host_facts --tree DIRECTORY"
ROW = ("host", "stack", "Python", "problems")


@dataclass(frozen=True)
class Answers:
    """The answer for each host: `plan` as plan.json has it; `request` is empty if the inventory's own was used."""

    plan: Json
    request: Mapping[str, Any]
    inventory: str

    @property
    def names(self) -> list[str]:
        return sorted({*self.plan["hosts"], *self.plan["problems_by_host"], *self.plan["unreachable"]})

    @property
    def ok(self) -> bool:
        return not self.plan["problems"] and not self.plan["unreachable"]

    def row(self, name: str) -> Json:
        part, problems = self.plan["hosts"].get(name, {}), self.plan["problems_by_host"].get(name, [])
        stack = "" if problems else (part.get("stack") or {}).get("name", "")
        return {
            "host": name,
            "stack": stack or None,
            "python": part.get("python") if stack else None,
            "problems": problems,
            "read": name not in self.plan["unreachable"],
        }

    @property
    def next(self) -> list[str]:
        """Lines for the inventory and commands, in order."""
        if not self.ok:
            return []
        line = f"deeplearning_request: {flow(self.request)}"
        return [
            *([line] if self.request else []),
            f"ansible-playbook -i {shlex.quote(self.inventory)} playbooks/plan.yml",
        ]

    def as_json(self) -> Json:
        findings = {key: self.plan[key] for key in ("problems", "warnings")}
        return {
            "status": "ok" if self.ok else "conflict",
            "hosts": [self.row(name) for name in self.names],
            **findings,
            "next": self.next,
        }

    def text(self) -> str:
        """One row for each host, then the sentences: hosts that share one are one line."""
        lines: list[str] = columns([ROW, *(cells(self.row(name)) for name in self.names)])
        for title, sentences in (
            ("Problems:", self.plan["problems"]),
            ("Good to know:", self.plan["warnings"]),
            ("Do next:", self.next),
        ):
            lines += [title, *[f"  {sentence}" for sentence in sentences]] if sentences else []
        return "\n".join(lines)


def cells(row: Json) -> tuple[str, ...]:
    if not row["read"]:
        return row["host"], "–", "–", "not read"
    return row["host"], row["stack"] or "–", row["python"] or "–", str(len(row["problems"]) or "–")


def flow(request: Mapping[str, Any]) -> str:
    """A request as YAML on one line; JSON is that, and every version is quoted."""
    return "{" + ", ".join(f"{key}: {json.dumps(value)}" for key, value in request.items()) + "}"


def of_files(paths: Sequence[Path], request: Mapping[str, Any]) -> Answers:
    """The plan of data nodes with the facts in these files."""
    full_request = dict(request) or ANY
    hosts = [facts_host(path, {**SITE, "deeplearning_request": full_request}) for path in paths]
    twice = [
        host.name
        for place, host in enumerate(hosts)
        if host.name in [previous_host.name for previous_host in hosts[:place]]
    ]
    if twice:
        raise Misuse(f"--host must name each host once, but two files are called {twice[0]}.")
    return Answers(make_plan(hosts, REPOSITORY).as_json(), full_request, "inventories/SITE")


def facts_host(path: Path, variables: Json) -> Host:
    """The host whose facts are in a file, which is checked like the answer of a host."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            answer = parse(0, " ".join(file.read(LARGEST + 1).split("\n")).strip(), "")
    except (OSError, NoAnswer) as error:
        raise Misuse(f"--host must name a file with a host's facts, but {path} cannot be read as one. {HOW}") from error
    facts = answer.get("facts", answer)
    if not isinstance(facts, dict) or "nvidia" not in facts:
        raise Misuse(f"--host must name a file with a host's facts, but {path} has none. {HOW}")
    return host_of(path.name.removesuffix(".json"), ("data_nodes",), variables, facts)


def of_inventory(inventory: str, request: Mapping[str, Any]) -> Answers:
    """The plan of an inventory's hosts, which are read for it; of the request, or of the one that the inventory has."""
    if missing_inventory([inventory]):
        raise Misuse(f"--inventory must exist, but {inventory} does not.")
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "plan.json"
        variables = {
            "preflight_plan_file": str(file),
            **({"deeplearning_request": dict(request)} if request else {}),
        }
        options = ["--inventory", inventory, "--extra-vars", json.dumps(variables)]
        completed = run("ansible-playbook", str(REPOSITORY / "playbooks" / "plan.yml"), *options)
        if not file.is_file():
            raise Misuse(
                f"The hosts of {inventory} must be read for a plan, but there is none:\n{completed.stdout.strip()}"
            )
        return Answers(json.loads(file.read_text(encoding="utf-8")), request, inventory)
