"""Parts of a stack that depend on the TensorFlow build but not on each other. Each part offers its choices, best first."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hadoop_dl.resolver.builds import TensorflowBuild
from hadoop_dl.resolver.findings import Finding
from hadoop_dl.resolver.request import Item


@dataclass
class Choice:
    """The contribution of a part to the stack: values by key, a reason for each, and what to know about it."""

    values: dict[str, Any] = field(default_factory=dict)
    reasons: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)


class Part(Protocol):
    """One part. Builds of one class have the same choices, so a choice is computed once per class and set of items."""

    level: str

    def classify(self, build: TensorflowBuild) -> Hashable: ...

    def best(self, build: TensorflowBuild, items: Sequence[Item]) -> Choice | None:
        """The first choice that meets all items; None if there is none."""

    def facts(self, build: TensorflowBuild, items: Sequence[Item]) -> Iterator[Finding]:
        """One fact for each item, and one for the build: together they say why there is no choice."""
