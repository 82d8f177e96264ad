"""The table of row costs shows ratios where there is something to compare with."""

from swift.bench.databases import DatabaseFigure, table


def figures(cpu_s):
    return {name: DatabaseFigure(name, 1000, cpu_s, 9.0) for name in ("replicate", "put", "list")}


def test_a_ratio_stands_beside_both_sides():
    lines = table(figures(0.5), figures(2.0)).splitlines()
    assert len(lines) == 5
    assert lines[2] == "| rows replicated | 2,000.0 | 500.0 | **4.0x** | 3x |"


def test_one_side_alone_has_no_ratio():
    assert table(figures(0.5), None).splitlines()[3] == "| rows put | 2,000.0 | - | - | 4x |"
