"""Where the data speaks about what an item names."""

from collections.abc import Iterator

from hadoop_dl.data.compat import Compat, Row
from hadoop_dl.resolver.constraint_problem import ConstraintProblem
from hadoop_dl.resolver.findings import merged, sources
from hadoop_dl.resolver.gpus import Gpu, UnknownGpu, architecture, common_names
from hadoop_dl.resolver.hosts import Hadoop, System, Unknown, find_hadoop, find_system
from hadoop_dl.resolver.known_values import nearest_values, value_rows
from hadoop_dl.resolver.request import CHOICES, Item
from hadoop_dl.resolver.versions import known, version


def item_sources(problem: ConstraintProblem, item: Item) -> tuple[str, ...]:
    """Where the data speaks about the subject that an item names."""
    return merged((sources(row) for row in item_rows(problem, item)), 3)


def item_rows(problem: ConstraintProblem, item: Item) -> Iterator[Row]:
    compat, key = problem.catalog.compat, item.key
    if isinstance(item.subject, System):
        yield from (row for row in compat.rows("platforms", "systems") if row["os"] == item.subject.key)
    elif isinstance(item.subject, Gpu):
        yield architecture(compat, item.subject.cc)
    elif isinstance(item.subject, Hadoop):
        yield {"source": item.subject.sources}
    elif isinstance(item.subject, (Unknown, UnknownGpu)) and item.subject.near:
        yield from near_rows(compat, item.subject, key)
    else:
        rows = list(value_rows(problem.catalog, key))
        matching_values = {value for value, _ in rows if item.specs and item.accepts(value)}
        if not matching_values and item.specs and item.key not in CHOICES:
            known_values = sorted({value for value, _ in rows if known(value)}, key=version)
            matching_values = set(nearest_values(item.specs[0], known_values))
        matching_rows = [row for value, row in rows if value in matching_values]
        yield from (matching_rows or [row for _, row in rows])[-1:]


def near_rows(compat: Compat, subject: Unknown | UnknownGpu, key: str) -> Iterator[Row]:
    """The rows of the names that are offered in place of one that is not known."""
    for name in subject.near:
        if key == "os":
            system = find_system(compat, name)
            rows = compat.rows("platforms", "releases")
            yield from (row for row in rows if isinstance(system, System) and row["os"] == system.key)
        elif key == "gpu":
            yield from [row for row in compat.rows("gpus", "devices") if name in (row["pci_id"], *common_names(row))][
                :1
            ]
        else:
            hadoop = find_hadoop(compat, name)
            yield {"source": hadoop.sources if isinstance(hadoop, Hadoop) else ()}
