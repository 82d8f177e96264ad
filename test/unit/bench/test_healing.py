"""The table of what healing costs shows ratios where there is something to compare with."""

from swift.bench.healing import GOALS, UNITS, HealingFigure, table


def figures(cpu_s, wall_s=2.0):
    return {name: HealingFigure(1000, cpu_s, 0.0 if name == "unchanged" else wall_s) for name in UNITS}


def test_a_ratio_stands_beside_both_sides_by_the_clock_and_by_cpu():
    lines = table(figures(0.5, 1.0), figures(2.0, 4.0)).splitlines()
    assert len(lines) == 2 + len(UNITS)
    wanted = "| archives rebuilt | 1,000 | 250 | **4.0x** | 2,000 | 500 | **4.0x** | 2x |"
    assert wanted in lines


def test_what_has_no_clock_and_one_side_alone_have_no_ratio():
    assert "| - | - | - | 2,000 | 500 | **4.0x** | 5x |" in table(figures(0.5), figures(2.0))
    assert "**" not in table(figures(0.5), None)


def test_every_row_has_a_goal():
    assert UNITS.keys() == GOALS.keys()
