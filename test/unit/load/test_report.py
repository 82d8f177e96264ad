"""A run, or two, as a page that needs nothing else, and that no name in it can break."""

import re
from dataclasses import replace

import pytest

from swift.load.compare import differences, to_json
from swift.load.report import comparison_page, html_page, html_table, run_page
from swift.load.summary import operation_rows, to_csv
from test.support.load_runs import run_of, saved_of

EVIL = '"><script>alert(1)</script>'


@pytest.fixture(scope="module")
def saved():
    return saved_of(1, rate=10)


@pytest.fixture(scope="module")
def page(saved):
    """Drawing takes its time: one page for all tests."""
    return run_page(replace(saved, workload=EVIL, description=EVIL, is_interrupted=True))


def test_a_page_has_all_figures_and_says_that_it_was_interrupted(page):
    assert page.count("<svg") == 3 and "503: 1" in page and "Interrupted" in page


def test_no_name_of_a_run_or_a_file_is_markup(saved, page):
    compared = comparison_page(replace(saved, workload=EVIL), saved, (EVIL, EVIL), differences(saved, saved))
    for text in (page, compared):
        assert "<script" not in text and "&lt;script&gt;" in text
    assert compared.count("<svg") == 2


def test_ids_of_plots_do_not_meet(page):
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', page)) <= set(ids)


def test_programs_get_the_same_figures(saved):
    assert len(to_json(saved, saved, differences(saved, saved))["differences"]) == 5
    assert to_csv(operation_rows(run_of(1, rate=10))).startswith("phase,operation,count,")


def test_a_phase_that_the_other_run_lacks_is_not_drawn(saved):
    assert comparison_page(saved, replace(saved, phases=[]), ("a", "b"), []).count("<svg") == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (1234, "1,234"),
        (1.234, "1.23"),
        (-1.5, "-1.50"),
        (1234.5, "1,234"),
        ("<b>", "&lt;b&gt;"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        ("", ""),
    ],
)
def test_cells_are_told_as_people_read_them(value, text):
    assert f">{text}</td>" in html_table(["a"], [[value]])


def test_columns_of_text_are_set_to_the_left_and_verdicts_have_colours():
    table = html_table(["name", "n", "verdict"], [["a", 1, "better"], ["b", 2, "worse"]])
    assert table.count(' class="text"') == 4
    assert 'class="text good">better' in table and 'class="text bad">worse' in table
    assert "<tbody></tbody>" in html_table(["a"], [])


def test_a_page_needs_nothing_else():
    page = html_page("t", ["<p>x</p>"])
    assert page.startswith("<!DOCTYPE html>") and "<p>x</p>" in page
    assert not re.findall(r'(?:src|href)="(?!#)', page)
