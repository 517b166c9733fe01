"""A host's answer to the report besides its facts, typed: gpu-check's results, what its GPUs do, and when it was changed and verified."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from hadoop_dl.data.host_facts import Count, FactsError, Said, Word, read
from hadoop_dl.data.typed import Number, Sentence
from hadoop_dl.data.yarn_nodes import NAME, ApplicationId

LATEST = 253402300799  # seconds; the end of the year 9999, the last one that a date can have
Outcome = Literal["PASS", "FAIL", "SKIP"]
Seconds = Annotated[int, Number(0, LATEST, clipped=True)]


@dataclass(frozen=True)
class Answer:
    """The result of one check of gpu-check."""

    name: Word
    outcome: Outcome
    message: Said


@dataclass(frozen=True)
class Health:
    """gpu-check's results, or why there are none; both None on a host without GPUs."""

    results: tuple[Answer, ...] | None = None
    problem: Said | None = None


@dataclass(frozen=True)
class Times:
    """When something was changed on the host and when it was verified, in seconds."""

    changed: Seconds | None = None
    verified: Seconds | None = None


@dataclass(frozen=True)
class Use:
    """On how many GPUs of the host an application computes; None: something in no known container of YARN."""

    application: ApplicationId | None
    gpus: Count


@dataclass(frozen=True)
class Holder:
    """A running application that holds GPUs, by YARN; `nodes`: those of its containers that have GPUs."""

    id: ApplicationId
    user: Annotated[str, Sentence(100)]
    queue: Annotated[str, Sentence(100)]
    gpus: Count
    nodes: tuple[Annotated[str, NAME], ...]


@dataclass(frozen=True)
class Asked:
    """The answer of report_facts besides the host's facts; `unanswered` is the reason if there are none.

    busy: None if the host cannot tell. holders: only the ResourceManager's host has them; yarn_problem: why it has none.
    """

    health: Health = Health()
    times: Times = Times()
    busy: tuple[Use, ...] | None = None
    holders: tuple[Holder, ...] | None = None
    yarn_problem: Said | None = None
    unanswered: Said = ""


def asked_of(answer: Any) -> Asked:
    """The rest of what report_reader answered; what has no sense is a problem of the host's GPUs."""
    try:
        return read(Asked, answer)
    except FactsError as error:
        return Asked(Health(problem=f"the host {error}"))
