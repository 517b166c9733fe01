"""What plan.yml -e plan_packages=true prints: the solved transactions of the driver, hosts with the same answer together, and what runs on the first batch."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hadoop_dl.data.terminal import PARAGRAPH, one_line
from hadoop_dl.plan.model import shorten

PARTS = ("comes", "changes", "goes", "other")


@dataclass(frozen=True)
class Answer:
    """Of a host: the lines of its transactions, or why there is none."""

    lines: tuple[str, ...] = ()
    refusal: str = ""


def answer_of(host: str, solved: Mapping[str, Any] | None, refused: Mapping[str, Any] | None) -> Answer:
    """From what the tasks registered; a host with neither was lost on the way, or gets no driver."""
    if refused is not None:  # without its name, so that hosts with the same reason are alike
        return Answer(refusal=re.sub(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", "the host", reason(refused)))
    if solved is None:
        return Answer(refusal="it did not answer, or the driver is only removed")
    lines: list[str] = []
    for result in solved.get("results") or ():
        packages = [(part, package) for part in PARTS for package in result["solution"][part]]
        lines += [one_line(result["item"]["title"]), *(f"  {part:<8}{one_line(package)}" for part, package in packages)]
        lines += [] if packages else ["  nothing to do"]
    return Answer(tuple(lines) or ("no package changes",))


def reason(refused: Mapping[str, Any]) -> str:
    """The message of a task that failed, or of those of its items that did."""
    failed = [item for item in refused.get("results") or () if item.get("failed")] or [refused]
    return " ".join(one_line(item.get("msg") or "a task failed without a message", PARAGRAPH) for item in failed)


def text(answers: Mapping[str, Answer], batch: Sequence[str], occupants: Mapping[str, Mapping[str, Any]]) -> str:
    kinds: dict[Answer, list[str]] = {}
    for host, answer in answers.items():
        kinds.setdefault(answer, []).append(host)
    lines = [f"PACKAGES of the driver on {len(answers)} hosts, solved by their own dnf or yum; no host was changed."]
    for answer, hosts in kinds.items():
        of_kind = answer.lines or (f"no transaction: {answer.refusal}",)
        lines += [f"  {shorten(hosts)}", *(f"    {line}" for line in of_kind)]
    return "\n".join([*lines, *first_batch(batch, occupants)])


def first_batch(batch: Sequence[str], occupants: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield f"RUNNING now on the first batch, {len(batch)} of these hosts (upgrade_batch):"
    for host in batch:
        answer = occupants.get(host, {"msg": "no answer"})
        if answer.get("skipped"):
            yield f"  {host}: not known, because no host is in the groups resource_managers and masters"
        elif "occupants" not in answer:
            yield f"  {host}: not known: {reason(answer)}"
        else:
            yield f"  {host}: {', '.join(map(one_line, answer['occupants'])) or 'nothing of YARN'}"


def failure(answers: Mapping[str, Answer]) -> str:
    refused = [host for host, answer in answers.items() if answer.refusal]
    if not refused:
        return ""
    return (
        f"The driver must have a transaction on each of its {len(answers)} hosts, but not on {shorten(refused)}; the reasons are above. No host was "
        "changed. Solve what they name, and run the plan again."
    )
