"""The bench of the resolver measures what it says; how long it takes is no test."""

from __future__ import annotations

import pytest

from hadoop_dl.data.host_facts import read_facts
from hadoop_dl_dev import bench, plan_bench, resolver_bench


def test_the_hosts_of_the_bench_are_of_many_kinds() -> None:
    hosts = [read_facts(resolver_bench.node(number)).profile for number in range(60)]
    assert len({host.os for host in hosts}) == 3
    assert len({host.gpus for host in hosts}) == 6  # five models, or none


def test_it_prints_a_table_with_the_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["resolve", "--hosts", "24", "--rounds", "1"]) == 0
    head, _, row = capsys.readouterr().out.strip().splitlines()
    cells = dict(
        zip((name.strip() for name in head.split("|")), (cell.strip() for cell in row.split("|")), strict=True)
    )
    assert (cells["hosts"], cells["kinds"]) == ("24", "21")  # no GPU is no GPU, whatever its model would be
    assert 0 < int(cells["get a stack"]) < 24
    assert float(cells["resolving / facts"]) > 0


def test_the_bench_of_the_plan_has_a_row_for_each_site_and_judges_each_kind_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert bench.main(["plan", "--hosts", "60,120", "--rounds", "1"]) == 0
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in capsys.readouterr().out.strip().splitlines()
    ]
    assert [row[1] for row in rows[2:]] == ["60", "120"] * len(plan_bench.SITES)
    judgement_counts = {(row[0], row[1]): row[2] for row in rows[2:]}
    for site in plan_bench.SITES:
        assert int(judgement_counts[site, "60"]) == int(judgement_counts[site, "120"]) > 0
