"""Plots of plans: a path is tried before the work, and what is drawn is what was found."""

import pytest

from swift.plan.errors import PlanError
from swift.plan.plots import checked_path, plot_choices, plot_lines


@pytest.mark.parametrize("name", ["plot", "plot.pdf", "plot.svg.txt", ".svg", ""])
def test_a_plot_is_svg_or_png(tmp_path, name):
    with pytest.raises(PlanError, match=r"must end in \.svg or \.png"):
        checked_path(str(tmp_path / name))


def test_a_directory_that_is_not_there_is_told_before_anything_is_reckoned(tmp_path):
    with pytest.raises(PlanError, match="no such directory"):
        checked_path(str(tmp_path / "none" / "plot.svg"))
    assert checked_path(str(tmp_path / "plot.png")) == str(tmp_path / "plot.png")


def text_of(path):
    # Letters are paths in these files; the comments beside them say what is written.
    return path.read_text()


def test_lines_are_joined_in_order_and_named(tmp_path):
    plot_lines(
        {"one": [(2.0, 1.0), (1.0, 3.0)], "two": [(1.0, 1.0)]},
        str(tmp_path / "l.svg"),
        title="Lines",
        across="x",
        up="y",
        beside={"one": [(1.0, 2.0), (2.0, 2.0)]},
    )
    found = text_of(tmp_path / "l.svg")
    assert "<!-- one -->" in found and "<!-- two -->" in found and "stroke-dasharray" in found


def test_choices_of_the_front_are_named(tmp_path):
    plot_choices([(1.0, 5.0), (2.0, 6.0)], [(1.0, 5.0, "cheap")], "Choices", str(tmp_path / "p.png"))
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    plot_choices([(1.0, 5.0)], [(1.0, 5.0, "cheap")], "Choices", str(tmp_path / "p.svg"))
    assert "<!-- cheap -->" in text_of(tmp_path / "p.svg")
