"""Figures of plans as people read them and as programs do."""

import json

import pytest

from swift.plan.assumptions import Assumptions
from swift.plan.capacity import Figure
from swift.plan.durability import DurabilityCheck
from swift.plan.report import PlanProgress, capacity_json, capacity_text, format_amount, format_table

FIGURES = [Figure("drives", 12, "", "there is so much"), Figure("space", 3e12, "B", "objects are so large")]
PLANS = {"3": {10**6: FIGURES, 10**9: FIGURES}, "4+2": {10**6: FIGURES, 10**9: FIGURES}}
CHECKS = {"3": DurabilityCheck(0.05, 400.0, 380.0, 1000)}


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "B", "0 B"),
        (999, "B", "999 B"),
        (999.9, "B", "1 kB"),
        (1000, "B", "1 kB"),
        (3.2e12, "B", "3.2 TB"),
        (1e30, "B", "1e+09 ZB"),
        (-5000, "B", "-5e+03 B"),
        (0.5, "s", "0.5 s"),
        (119, "s", "119 s"),
        (120, "s", "2 min"),
        (7200, "s", "2 h"),
        (172800, "s", "2 d"),
        (0.123, "share", "12.3 %"),
        (1e-9, "probability", "1.0e-09"),
        (5, "drives", "5 drives"),
        (1234567, "", "1,234,567"),
        (0.12345, "", "0.123"),
        (123.4, "/s", "123 /s"),
        (float("inf"), "B", "inf B"),
        (float("inf"), "years", "inf years"),
        (float("nan"), "", "nan"),
        (float("inf"), "s", "inf s"),
    ],
)
def test_an_amount_is_told_in_the_unit_that_reads_best(value, unit, text):
    assert format_amount(value, unit) == text


def test_columns_are_as_wide_as_they_must_be():
    assert format_table([["name", "n"], ["a", "1,000"], ["longer", "1"]]).splitlines() == [
        "name        n",
        "------  -----",
        "a       1,000",
        "longer      1",
    ]


def test_every_policy_has_a_table_and_every_reason_is_told_once():
    text = capacity_text(PLANS, CHECKS, Assumptions())
    assert text.count("drives") >= 2 and text.count("there is so much") == 1
    assert "3       1e06  1e09" in text and "4+2     1e06  1e09" in text
    assert "ratio 0.95" in text and "assumed (--set NAME=NUMBER" in text


def test_programs_get_the_numbers_as_they_are():
    told = json.loads(capacity_json(PLANS, CHECKS, Assumptions()))
    assert told["plans"]["4+2"]["1000000"][1]["value"] == 3e12
    assert told["checks"]["3"]["ratio"] == 0.95
    assert all(set(each) == {"value", "doc"} for each in told["assumptions"].values())


def test_a_long_piece_of_work_says_now_and_then_how_far_it_is():
    lines, now = [], [0.0]
    progress = PlanProgress(lines.append, lambda: now[0])
    for done in range(11):
        now[0] = float(done)
        progress(done, 10, "searching")
    assert len(lines) == 5
    assert lines[0] == "searching: 2 of 10, about 8 s left"


def test_what_is_soon_over_says_nothing():
    lines, now = [], [0.0]
    progress = PlanProgress(lines.append, lambda: now[0])
    progress(1, 2, "searching")
    now[0] = 99.0
    progress(0, 2, "searching")
    assert lines == []
