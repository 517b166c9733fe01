"""The acceptance run of all hosts (playbooks/accept_gpus.yml): what each measured, typed, and which of it is less than on the others."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from ansible.module_utils.hadoop_dl_host.text_columns import columns

from hadoop_dl.data.host_facts import Address, Said
from hadoop_dl.data.report_answers import Answer
from hadoop_dl.data.typed import Number, Sentence
from hadoop_dl.hosts.report_text import listed

Name = Annotated[str, Sentence(60)]
Speed = Annotated[int, Number(0, 10**9)]  # MB/s; 0 for a limit that is not known
# Copies of one kind between the same cards differ by some percent: by the place of a GPU in its host and by what else runs there.
SHARE = 0.8
LEAST = 3  # measures of which the median says what is usual


@dataclass(frozen=True)
class Measure:
    gpu: Address
    peer: Address
    kind: Literal["host to GPU", "GPU to host", "memory", "GPU to GPU", "all-reduce"]
    link: Name
    speed: Speed
    limit: Speed


@dataclass(frozen=True)
class Acceptance:
    """The answer of gpu-check --accept; `cards` are names by address, `unanswered` is the reason if nothing was."""

    results: tuple[Answer, ...] = ()
    cards: Mapping[Address, Name] | None = None
    measures: tuple[Measure, ...] = ()
    unanswered: Said = ""


Hosts = Mapping[str, Acceptance]
Kind = tuple[str, str, str]  # the card, the kind of the copy, and the way


def kind_of(acceptance: Acceptance, measure: Measure) -> Kind:
    """Measures that should be alike, also if a card's slot is too narrow or some of its NVLinks are down."""
    way = "NVLink" if measure.link.startswith("NV") else measure.link
    return (
        (acceptance.cards or {}).get(measure.gpu, ""),
        measure.kind,
        way if measure.peer or measure.kind == "all-reduce" else "",
    )


def kinds(hosts: Hosts) -> dict[Kind, list[tuple[str, Measure]]]:
    alike: dict[Kind, list[tuple[str, Measure]]] = {}
    for host, answer in sorted(hosts.items()):
        for measure in answer.measures:
            alike.setdefault(kind_of(answer, measure), []).append((host, measure))
    return dict(sorted(alike.items()))


def outliers(hosts: Hosts) -> list[tuple[str, Measure, float, int]]:
    """(host, measure, median, number of measures of its kind)."""
    rows = []
    for alike in kinds(hosts).values():
        median = statistics.median(measure.speed for _, measure in alike)
        if len(alike) >= LEAST:
            rows += [(host, measure, median, len(alike)) for host, measure in alike if measure.speed < SHARE * median]
    return rows


def faults(hosts: Hosts) -> list[str]:
    """A sentence for each step that failed, and for each host without an answer."""
    sentences = []
    for host, answer in sorted(hosts.items()):
        sentences += [
            f"{host}: {result.name}: {result.message}" for result in answer.results if result.outcome == "FAIL"
        ]
        sentences += [f"{host}: {answer.unanswered}"] if answer.unanswered else []
    return sentences


def skipped(hosts: Hosts) -> list[str]:
    """Hosts that were not measured and did not fail, with the reason of the first step."""
    return [
        f"{host}: {answer.results[0].message}"
        for host, answer in sorted(hosts.items())
        if not answer.measures and answer.results and answer.results[0].outcome == "SKIP"
    ]


def gigabytes(speed: float) -> str:
    return f"{speed / 1000:.1f}"


def usual(hosts: Hosts) -> list[str]:
    """The table of what was measured: a line for each kind."""
    lines: list[Sequence[str]] = [("GPU", "copy", "way", "measured", "lowest", "median", "highest")]
    for (card, kind, way), alike in kinds(hosts).items():
        speeds = [measure.speed for _, measure in alike]
        numbers = (min(speeds), statistics.median(speeds), max(speeds))
        lines.append((card, kind, way, str(len(speeds)), *map(gigabytes, numbers)))
    return columns(lines) if len(lines) > 1 else []


def unusual(hosts: Hosts) -> list[str]:
    """The table of outliers."""
    lines: list[Sequence[str]] = [("host", "GPU", "copy", "to", "link", "GB/s", "median", "of", "possible")]
    for host, measure, median, number in outliers(hosts):
        words = (measure.gpu, measure.kind, measure.peer, measure.link)
        limit = gigabytes(measure.limit) if measure.limit else ""
        lines.append((host, *words, *map(gigabytes, (measure.speed, median)), str(number), limit))
    return columns(lines) if len(lines) > 1 else []


def text(hosts: Hosts) -> str:
    """The whole answer of the playbook."""
    measured = sum(1 for answer in hosts.values() if answer.measures)
    blocks = [f"ACCEPTANCE: {measured} of {len(hosts)} hosts were measured."]
    blocks.append(listed("Measured, in GB/s", usual(hosts)))
    blocks.append(listed(f"Outliers: below {SHARE:.0%} of the median of their kind", unusual(hosts)))
    blocks.append(listed("Failed", faults(hosts)))
    blocks.append(listed("Not measured", skipped(hosts)))
    return "\n\n".join(block for block in blocks if block)


def refusal(hosts: Hosts) -> str:
    """Why the hosts are not accepted, or nothing."""
    bad = {host for host, *_ in outliers(hosts)} | {host for host, answer in hosts.items() if faults({host: answer})}
    if bad:
        return f"GPUs of {', '.join(sorted(bad))} must be as card and links allow and as on the other hosts, but are not; the lines above say what was found."
    if not any(answer.measures for answer in hosts.values()):
        return "GPUs of at least one host must be measured, but none was; the lines above have the reasons."
    return ""
