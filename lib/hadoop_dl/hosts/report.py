"""The state of every host: its answer compared with the plan, as one mapping for JSON. Pure functions.

report_text, report_page and report_metrics make of it what people and Prometheus read.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hadoop_dl.data import advisories
from hadoop_dl.data.host_facts import HostFacts
from hadoop_dl.data.moments import iso
from hadoop_dl.data.report_answers import Asked, Health
from hadoop_dl.data.stacks import load_stack
from hadoop_dl.data.terminal import one_line
from hadoop_dl.hosts import gpu_use
from hadoop_dl.plan import gpu_layer, target
from hadoop_dl.plan.components import GROUPS
from hadoop_dl.plan.model import Host, Json, Plan, Row, shorten
from hadoop_dl.plan.problems import by_host

SCHEMA = 1
# The worst first: no answer; a GPU or the environment is damaged; something differs from the plan.
UNREACHABLE, FAULT, DRIFT, PLANNED = "unreachable", "fault", "drift", "as planned"
STATES = (UNREACHABLE, FAULT, DRIFT, PLANNED)
EXIT_PLANNED, EXIT_DRIFT, EXIT_UNREACHABLE = 0, 3, 4
# What the hosts of a group are compared in, by the names that a report has for it.
COMPARED = {
    "os": "operating system",
    "kernel": "kernel",
    "driver": "driver",
    "environment": "environment",
    "gpu": "GPUs",
}


def make_report(
    hosts: Sequence[Host],
    answers: Mapping[str, Asked],
    site_plan: Plan,
    verified: Mapping[str, Json],
    now: float,
    inventory: Sequence[str] = (),
    idle: Mapping[str, int] | None = None,
) -> Json:
    """The report. `answers` are those of report_facts; `site_plan` is the plan with problems and warnings host by host; `idle`: gpu_use.idle_before."""
    problems, shared = by_host(site_plan.problems)
    warnings, general = by_host(site_plan.warnings + site_plan.notes)
    general += gpu_use.unanswered(hosts, answers)
    rows: dict[str, list[Row]] = {}
    for row in site_plan.rows:
        if row.wanted:  # without an environment that fits the host, a problem has the reason
            rows.setdefault(row.host, []).append(row)
    odd = other_bytes(hosts)
    entries = [
        host_entry(
            host,
            answers.get(host.name, Asked()),
            site_plan.hosts.get(host.name, {}),
            drift=rows.get(host.name, []),
            problems=problems.get(host.name, []) + odd.get(host.name, []),
            warnings=warnings.get(host.name, []),
            verified=verified.get(host.name),
        )
        for host in hosts
    ]
    silent = [
        ", ".join(site_plan.unreachable),
        ", ".join(host.name for host in hosts if not (host.facts or host.problem)),
    ]
    unreachable_texts = tuple(f"{names} cannot be reached" for names in silent)  # as the rows of these hosts say
    unplanned = [sentence for sentence in shared if not sentence.startswith(unreachable_texts)]
    states = Counter(entry["state"] for entry in entries)
    return {
        "schema": SCHEMA,
        "made": iso(now),
        "inventory": list(inventory),
        "status": status(states, unplanned),
        "states": {state: states[state] for state in STATES},
        "problems": unplanned,
        "warnings": [sentence for sentence in general if not sentence.startswith(unreachable_texts)],
        "applications": gpu_use.applications(hosts, answers, idle or {}, now),
        "groups": compared_groups(entries),
        "hosts": entries,
    }


def status(states: Mapping[str, int], problems: Sequence[str]) -> int:
    """The exit status: an unreachable host outweighs drift, because its state is unknown."""
    if states.get(UNREACHABLE):
        return EXIT_UNREACHABLE
    return EXIT_DRIFT if problems or states.get(FAULT) or states.get(DRIFT) else EXIT_PLANNED


def host_entry(
    host: Host,
    answer: Asked,
    part: Json,
    *,
    drift: Sequence[Row],
    problems: Sequence[str],
    warnings: Sequence[str],
    verified: Json | None,
) -> Json:
    """One host's row."""
    entry: Json = {"host": host.name, "groups": sorted(host.groups), "state": UNREACHABLE}
    facts = host.facts
    if facts is None:
        failures = [text for text in (answer.unanswered, host.problem) if text]
        reasons = [*failures, *problems] or ["there is no answer"]
        return {
            **entry,
            **system(None),
            **software(None, {}),
            "gpu_check": None,
            "drift": [],
            "problems": list(problems),
            "notes": [],
            "reasons": reasons,
            "verified": None,
            "changed": None,
        }
    health = gpu_check(answer.health)
    properties = {**system(facts), **software(facts, part)}
    gpus = {"gpus": facts.nvidia.count, "gpus_required": whole(host.variables.get("gpu_count"))}
    faults = damages(properties, health)
    differences = [f"{row.component}: {row.now} -> {row.wanted} ({row.reason})" for row in drift] + list(problems)
    notes = [*warnings, *facts.unanswered, *advisories.notes(properties["environment"] or "")]
    if properties["kernel_next"]:
        notes.append(f"the next boot starts kernel {properties['kernel_next']}")
    return {
        **entry,
        **properties,
        **gpus,
        "state": FAULT if faults else DRIFT if differences else PLANNED,
        "reasons": faults + differences,
        "drift": [vars(row) for row in drift],
        "problems": list(problems),
        "notes": notes + failed_verify(verified),
        "gpu_check": health,
        "verified": last_time(answer.times.verified, verified),
        "changed": iso(answer.times.changed) if answer.times.changed else None,
    }


def system(facts: HostFacts | None) -> Json:
    """Operating system, kernel, GPUs and driver, as a report shows them; None for what no answer."""
    properties: Json = dict.fromkeys(("os", "kernel", "kernel_next", "driver", "module", "gpus", "gpus_required"))
    properties |= {"driver_loaded": False, "gpu_models": []}
    if facts is None:
        return properties
    running, following, nvidia = facts.kernel.running, facts.kernel.default_boot, facts.nvidia
    return properties | {
        "os": facts.os.name,
        "kernel": running,
        "kernel_next": following if following and running and following != running else None,
        "driver": nvidia.driver or nvidia.installed,
        "driver_loaded": bool(nvidia.driver),
        "module": nvidia.module,
        "gpu_models": gpu_layer.models(nvidia),
    }


def software(facts: HostFacts | None, part: Json) -> Json:
    """CUDA, cuDNN, NCCL and the environment. A library that the environment has as a wheel belongs to the stack's version."""
    properties: Json = {"cuda": [], "cudnn": [], "nccl": [], "in_environment": {}}
    properties |= dict.fromkeys(("environment", "stack", "digest", "environment_problem"))
    if facts is None:
        return properties
    current = facts.deeplearning.current
    environment = facts.deeplearning.environments.get(current or "")
    stack, _, digest = (current or "").rpartition("-")
    properties |= {
        "cuda": sorted(facts.cuda.toolkits),
        "cudnn": list(facts.cuda.cudnn),
        "nccl": list(facts.cuda.nccl),
        "environment": current,
        "stack": stack or None,
        "digest": digest or None,
        "environment_problem": environment.problem if environment else "it is missing" if current else None,
    }
    plan_stack = part.get("stack") or {}
    active = bool(current) and current == part.get("environment") and "cuda" in plan_stack
    if active and target.locked(load_stack(str(plan_stack["name"])), str(part["python"])).cuda:
        properties["in_environment"] = {
            name: plan_stack[name] for name in ("cuda", "cudnn", "nccl") if name in plan_stack
        }
    return properties


def other_bytes(hosts: Sequence[Host]) -> dict[str, list[str]]:
    """Hosts whose active environment has other bytes than that of most hosts with the same lock and build of Python, each with a sentence."""
    alike: dict[tuple[object, ...], dict[str, list[str]]] = {}
    for host in hosts:
        current = (host.facts and host.facts.deeplearning.current) or ""
        environment = host.facts and host.facts.deeplearning.environments.get(current)
        if environment and environment.python and environment.contents:
            alike.setdefault((current, environment.python, environment.lock), {}).setdefault(
                environment.contents, []
            ).append(host.name)
    sentences: dict[str, list[str]] = {}
    for (name, *_), kinds in alike.items():
        most = max(len(names) for names in kinds.values())
        usual = [names for names in kinds.values() if len(names) == most]
        for names in kinds.values():
            if usual != [names]:
                other_hosts = shorten([host_name for group in usual if group is not names for host_name in group])
                sentence = (
                    f"the environment {name} must have the same bytes on all hosts with one build of Python, but has others than on {other_hosts}. "
                    f"Compare .deeplearning/files.txt in it."
                )
                sentences |= {host_name: [sentence] for host_name in names}
    return sentences


def gpu_check(health: Health) -> Json | None:
    """gpu-check's results; None on a host without anything to check."""
    if health.problem:
        return {"problem": health.problem, "passed": [], "failed": {}, "skipped": {}}
    if not health.results:
        return None
    by_outcome: dict[str, dict[str, str]] = {"PASS": {}, "FAIL": {}, "SKIP": {}}
    for result in health.results:
        by_outcome[result.outcome][result.name] = result.message
    return {
        "problem": None,
        "passed": sorted(by_outcome["PASS"]),
        "failed": by_outcome["FAIL"],
        "skipped": by_outcome["SKIP"],
    }


def damages(properties: Json, health: Json | None) -> list[str]:
    """Damage on the host, independent of the plan."""
    broken = []
    if properties["environment_problem"]:
        broken.append(f"the environment {properties['environment']} is damaged: {properties['environment_problem']}")
    if health and health["problem"]:
        broken.append(health["problem"])
    return broken + [f"gpu-check {name}: {message}" for name, message in (health or {"failed": {}})["failed"].items()]


def last_verify(directory: Path, inventory: Sequence[str]) -> dict[str, Json]:
    """The results of the controller's last run of the suite, by host; empty if it was for another inventory."""
    try:
        run = json.loads((directory / "run.json").read_text(encoding="utf-8"))
        if Path(run["inventory"]).resolve() not in {Path(source).resolve() for source in inventory}:
            return {}
        results = json.loads((directory / "report.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    hosts: dict[str, Json] = {}
    for result in results:
        entry = hosts.setdefault(result["host"], {"at": run["at"], "questions": 0, "failed": []})
        entry["questions"] += 1
        if result["outcome"] in ("failed", "unexpected success"):
            entry["failed"].append(result["question"])
    return hosts


def last_time(receipt: int | None, verified: Json | None) -> str | None:
    """The newest of the host's own record and the controller's last run of playbooks/verify.yml."""
    times = [time for time in (receipt, verified["at"] if verified else None) if time]
    return iso(max(times)) if times else None


def failed_verify(verified: Json | None) -> list[str]:
    if not verified or not verified["failed"]:
        return []
    return [
        f"the last verification failed {len(verified['failed'])} of {verified['questions']} questions: {', '.join(verified['failed'])}"
    ]


def compared_groups(entries: Sequence[Json]) -> list[Json]:
    """For each group of the project what its hosts do not have in common; hosts that gave no answer do not count."""
    groups = []
    for group in GROUPS:
        members = [entry for entry in entries if group in entry["groups"] and entry["state"] != UNREACHABLE]
        if not members:
            continue
        differ: dict[str, dict[str, list[str]]] = {}
        for name in COMPARED:
            values: dict[str, list[str]] = {}
            for entry in members:
                values.setdefault(shown(entry, name), []).append(entry["host"])
            if len(values) > 1:
                differ[name] = dict(sorted(values.items(), key=lambda item: -len(item[1])))
        groups.append({"group": group, "hosts": len(members), "differ": differ})
    return groups


def shown(entry: Json, name: str) -> str:
    """A cell: one line of limited length, whatever the host answered."""
    return one_line(cell_text(entry, name))


def cell_text(entry: Json, name: str) -> str:
    if name == "driver":
        kind = entry["module"] or ("not loaded" if entry["driver"] else None)
        return f"{entry['driver']} ({kind})" if entry["driver"] else "-"
    if name in ("cuda", "cudnn", "nccl"):
        wheel = entry["in_environment"].get(name)
        return ", ".join([*entry[name], *([f"{wheel} (wheel)"] if wheel else [])]) or "-"
    if name == "gpu":
        return gpu_text(entry)
    if name in ("verified", "changed"):
        return str(entry[name] or "-")[:10]
    return str(entry[name] or "-")


def gpu_text(entry: Json) -> str:
    if entry["gpus"] is None:
        return "-"
    count, required = entry["gpus"], entry["gpus_required"]
    number = str(count) if required in (None, count) else f"{count} of {required}"
    return f"{number} x {', '.join(entry['gpu_models'])}" if entry["gpu_models"] else number


def health_text(entry: Json) -> str:
    """gpu-check in a word or two."""
    health = entry["gpu_check"]
    if health is None:
        return "-"
    if health["problem"]:
        return "no answer"
    return f"{len(health['failed'])} failed" if health["failed"] else f"{len(health['passed'])} passed"


def whole(value: Any) -> int | None:
    """A number of the inventory, which -e passes as text; None for a value that the plan refuses."""
    return int(value) if re.fullmatch("[0-9]{1,3}", str(value)) else None
