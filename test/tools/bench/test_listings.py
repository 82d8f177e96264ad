"""The command that measures pages of listings measures the same pages of both containers."""

import json

from tools.bench import listings


def test_both_containers_give_pages_of_the_same_length_and_all_prefixes(tmp_path, capsys):
    figures = listings.measure(tmp_path, 3000, 400, 1)
    by_page = {figure.page: figure for figure in figures}
    assert by_page["first page"].entries == by_page["last page"].entries == 100
    assert by_page["prefixes, first page"].entries == 40
    assert figures[-1].entries == 300
    assert "| first page | 100 |" in listings.table(figures, 3000, 400)
    assert "CPU seconds" in capsys.readouterr().err


def test_names_are_all_different_whatever_their_number():
    for rows in (10, 1000, 7_368):
        assert len(set(listings.names_of(rows))) == rows


def test_figures_are_written(tmp_path, capsys):
    path = tmp_path / "figures.json"
    # Whether the goal is met is nothing that containers this small can tell.
    listings.main(["--rows", "800", "--small", "400", "--runs", "1", "--json", str(path)])
    assert {row["page"] for row in json.loads(path.read_text())} > {"first page", "reverse page"}
    assert "goal 3" in capsys.readouterr().out
