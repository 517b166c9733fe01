"""Who holds GPUs and computes on none of them: YARN's applications beside what the GPUs of the hosts do. Pure functions, besides `idle_before`."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from hadoop_dl.data.moments import iso, seconds_of
from hadoop_dl.data.report_answers import Asked, Holder
from hadoop_dl.data.yarn_nodes import is_named, names_of
from hadoop_dl.plan import yarn
from hadoop_dl.plan.model import Host, Json, shorten


def idle_before(directory: Path, inventory: Sequence[str]) -> dict[str, int]:
    """Application -> since when the earlier reports of this inventory found it idle, in seconds; empty without such a report."""
    try:
        report = json.loads((directory / "report.json").read_text(encoding="utf-8"))
        if report["inventory"] != list(inventory):
            return {}
        return {row["id"]: seconds_of(row["idle_since"]) for row in report["applications"] if row["idle_since"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def applications(
    hosts: Sequence[Host], answers: Mapping[str, Asked], earlier: Mapping[str, int], now: float
) -> list[Json]:
    """The applications that hold GPUs, those with most idle ones first."""
    busy: Counter[str] = Counter()
    seen: list[str] = []  # names of hosts all of whose busy GPUs have a known application
    for host in hosts:
        uses = answers.get(host.name, Asked()).busy
        busy.update({use.application: use.gpus for use in uses or () if use.application})
        if uses is not None and all(use.application for use in uses):
            seen += names_of(host.name, host.variables)
    rows = [row(holder, busy[holder.id], seen, earlier, now) for holder in holders(hosts, answers)]
    return sorted(rows, key=lambda entry: (entry["busy"] - entry["gpus"], entry["id"]))


def holders(hosts: Sequence[Host], answers: Mapping[str, Asked]) -> Sequence[Holder]:
    """YARN's own list: one of its masters has it, whatever other hosts answer."""
    lists = [answers[host.name].holders for host in hosts if yarn.MASTERS in host.groups and host.name in answers]
    return next((found for found in lists if found is not None), ())


def row(holder: Holder, busy: int, seen: Sequence[str], earlier: Mapping[str, int], now: float) -> Json:
    """idle_since: the first of the reports, up to this one, none of which saw it compute; None if it does, or if a host of it is not known (`unseen`)."""
    names = set(seen)
    unseen = [node for node in holder.nodes if not is_named(node, names)] if holder.nodes else ["its hosts"]
    idle = not busy and not unseen
    return {
        "id": holder.id,
        "user": holder.user,
        "queue": holder.queue,
        "gpus": holder.gpus,
        "busy": busy,
        "unseen": unseen,
        "idle_since": iso(earlier.get(holder.id, now)) if idle else None,
    }


def sentences(report: Json) -> list[str]:
    """A line for each application."""
    lines = []
    for entry in report["applications"]:
        state = f"{entry['busy']} busy"
        if entry["idle_since"]:
            minutes = (seconds_of(report["made"]) - seconds_of(entry["idle_since"])) // 60
            state += f", idle for {minutes} min" if minutes else ", idle now"
        elif entry["unseen"] and entry["busy"] < entry["gpus"]:
            state += f", the use on {shorten(entry['unseen'])} is not known"
        lines.append(f"{entry['gpus']} held, {state}: {entry['id']} of {entry['user']} in queue {entry['queue']}")
    return lines


def unanswered(hosts: Sequence[Host], answers: Mapping[str, Asked]) -> list[str]:
    """Why a site that has GPUs under YARN gets no list."""
    masters = [answers[host.name] for host in hosts if yarn.MASTERS in host.groups and host.name in answers]
    problems = [answer.yarn_problem for answer in masters if answer.yarn_problem]
    if not problems or any(answer.holders is not None for answer in masters) or not any(map(yarn.asked, hosts)):
        return []
    return [f"YARN did not report which applications hold GPUs: {problems[0]}"]
