"""``python -m tools.studies`` prints a study beside its figures."""

import pytest

from tools.studies.__main__ import main


@pytest.mark.long
def test_it_prints_the_published_figures_and_plots_them(capsys, tmp_path):
    plot = tmp_path / "study.svg"
    assert main(["2017", "--seconds", "1", "--plot", str(plot)]) == 0
    out = capsys.readouterr().out
    assert "published" in out and "assumed" in out
    assert plot.read_text().startswith("<?xml")


def test_a_plot_of_another_kind_is_refused_in_one_line(capsys):
    assert main(["1991", "--plot", "plot.bmp"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
