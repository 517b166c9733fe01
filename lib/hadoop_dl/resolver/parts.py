"""Parts of a stack that hang on the TensorFlow but not on each other. Each part offers its choices, best first."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hadoop_dl.resolver.findings import Finding
from hadoop_dl.resolver.request import Item
from hadoop_dl.resolver.universe import Core


@dataclass
class Choice:
    """What a part adds to the stack: values by key, a reason for each, and what to know about it."""

    values: dict[str, Any] = field(default_factory=dict)
    reasons: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)


class Part(Protocol):
    """One part. Cores of one class have the same choices, so a part is asked once per class and set of items."""

    level: str

    def classify(self, core: Core) -> Hashable: ...

    def best(self, core: Core, items: Sequence[Item]) -> Choice | None:
        """The first choice that meets all items; None where there is none."""

    def possible(self, core: Core, items: Sequence[Item]) -> bool:
        """Whether there is a choice: a part whose reasons take long to write finds out without them."""
        return self.best(core, items) is not None

    def facts(self, core: Core, items: Sequence[Item]) -> Iterator[Finding]:
        """One fact for each item, and one for the core: together they say why there is no choice."""
