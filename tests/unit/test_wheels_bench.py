"""The table of scripts/bench wheels; what it measures needs the demo cluster."""

from __future__ import annotations

from hadoop_dl_dev.wheels_bench import Run, table


def test_a_row_has_medians_the_time_on_the_link_and_the_ratio_to_the_first_row_of_its_round() -> None:
    one = [Run(wall, 20, 25_000_000) for wall in (10, 20, 40)]
    eight = [Run(wall, 160, 200_000_000) for wall in (80, 120, 100)]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table({("mirror", 1): one, ("mirror", 8): eight}, rate=20e6).splitlines()
    ]
    # 200 MB are 80 s at 20 Mbit/s. The rounds' ratios are 8, 6 and 2.5; 100 / 20 of two medians is no round's.
    assert rows[2:] == [
        ["1", "mirror", "25", "10", "20", "2.00", "1.00", "20"],
        ["8", "mirror", "200", "80", "100", "1.25", "6.00", "160"],
    ]
    assert len(rows[0]) == len(rows[2])
