"""Figures of the README are those of the files that they come from."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = " ".join((ROOT / "README.md").read_text().split())


def test_the_number_of_recorded_answers_is_true():
    answers = json.loads((ROOT / "test/golden/data/api-answers.json").read_text())
    assert f"{len(answers):,} recorded answers" in README


def test_the_number_of_clients_is_true():
    table = (ROOT / "doc/reference/clients.md").read_text()
    rows = re.findall(r"^\| [^|]+ \| [^|]+ \| \d+ \| \d+ \|", table, re.M)
    assert f"[{len(rows)} client programs" in README


def test_the_figures_of_speed_are_those_of_the_table():
    page = (ROOT / "doc/explanation/performance.md").read_text()
    page = page.partition("\n## Result on XFS\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (PUT|GET) (?:1|10|64) KiB c\d+ \|.*?\*\*([\d.]+)x\*\*", page, re.M)
    for verb, words in (
        ("PUT", "{} to {} times as many small writes"),
        ("GET", "{} to {} times as many small reads"),
    ):
        ratios = [float(ratio) for each, ratio in rows if each == verb]
        assert words.format(round(min(ratios)), round(max(ratios))) in README
