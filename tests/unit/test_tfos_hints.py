"""tfos-submit's table of known errors. Every text is a whole sentence as printed; its source is beside it."""

import pytest
from resource_manager import collected
from tfos_submit import hints

ROWS = hints.table()
SENTENCES = [(row, seen) for row in ROWS for seen in [row.seen, *(also[0] for also in row.also)]]


def log(*lines: str) -> str:
    return collected(("container_1_0001_01_000002", "data1", "stderr", "\n".join(lines) + "\n"))


@pytest.mark.parametrize(("row", "seen"), SENTENCES, ids=[seen[:60] for _, seen in SENTENCES])
def test_a_sentence_gets_the_hint_of_its_row_alone(row: hints.Row, seen: str) -> None:
    expected = [hints.sentence(row, row.pattern.search(seen))]
    assert hints.hints(seen) == expected
    assert "{" not in expected[0]
    assert hints.hints(log("26/11/24 00:48:58 ERROR Executor: Exception in task 0.0", seen)) == expected


@pytest.mark.parametrize("row", ROWS, ids=[row.seen[:60] for row in ROWS])
def test_a_row_is_complete(row: hints.Row) -> None:
    assert row.source
    assert row.cause.rstrip(":").endswith((".", "}")) or row.cause.endswith(":"), row.cause
    assert row.step or row.cause.endswith("{0}")


def test_what_is_well_has_no_hint() -> None:
    assert hints.hints("all is well") == []
    healthy = "26/11/24 00:48:58 INFO RetryInvocationHandler: Operation category READ is not supported in state standby"
    assert hints.hints(log(healthy)) == []


def test_a_row_that_names_the_cause_is_before_one_that_names_the_end() -> None:
    lines = (
        "libcublas.so.9.0: cannot open shared object file",
        "26/11/24 00:48:58 ERROR X: Python worker exited unexpectedly",
    )
    assert hints.hints(log(*lines)) == hints.hints("libcublas.so.9.0: cannot open shared object file")
