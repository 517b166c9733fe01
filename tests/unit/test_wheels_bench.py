"""The table of scripts/bench wheels; what it measures needs the demo cluster."""

from __future__ import annotations

from hadoop_dl_dev.wheels_bench import Run, table


def test_a_row_has_the_time_on_the_link_and_the_ratio_to_the_first_row() -> None:
    runs = [("mirror", 1, Run(20, 20, 25_000_000)), ("hdfs", 8, Run(120, 160, 200_000_000))]
    head, _, *rows = ([cell.strip() for cell in row.strip("|").split("|")] for row in table(runs, 20e6).splitlines())
    # 200 MB are 80 s at 20 Mbit/s.
    assert rows == [
        ["20", "1", "mirror", "25", "10", "20", "1.00", "20"],
        ["20", "8", "hdfs", "200", "80", "120", "6.00", "160"],
    ]
    assert len(head) == len(rows[0])
