"""A simulated figure beside the published one."""

import pytest

from tools.studies.comparison import ComparedFigure, comparison_text, plot_comparison


@pytest.mark.parametrize(
    ("ours", "deviation", "is_near"),
    [(10.0, 0.0, True), (12.0, 0.0, True), (9.5, -0.05, True), (13.2, 0.1, True), (8.0, -0.2, False)],
)
def test_what_is_outside_of_the_range_is_off_by_its_nearer_end(ours, deviation, is_near):
    figure = ComparedFigure("rate", ours, 10.0, 12.0, "MB/s", 0.1)
    assert figure.deviation == pytest.approx(deviation)
    assert figure.is_near is is_near
    assert figure.published == "10 to 12 MB/s"


def test_where_nothing_is_published_nothing_is_missed():
    figure = ComparedFigure("rate", 5.0, None, None, "MB/s", 0.1)
    assert figure.is_near and figure.published == "-"


def test_the_table_says_what_was_missed():
    text = comparison_text(
        [
            ComparedFigure("time", 37.0, 37.0, 37.0, "ms", 0.1),
            ComparedFigure("rate", 8.0, 10.0, 12.0, "MB/s", 0.1),
        ]
    )
    time, rate = text.splitlines()[-2:]
    assert "37 ms" in time and "+0 %" in time and "MISSED" not in time
    assert "-20 %" in rate and "10 % MISSED" in rate


def test_each_figure_with_a_published_range_has_a_place(tmp_path):
    figures = [
        ComparedFigure("known", 1.0, 0.5, 1.5, "s", 0.1),
        ComparedFigure("nowhere published", 1.0, None, None, "s", 0.1),
    ]
    plot_comparison(figures, "A study", str(tmp_path / "c.svg"))
    found = (tmp_path / "c.svg").read_text()
    assert "<!-- A study -->" in found and "known" in found and "nowhere published" not in found
