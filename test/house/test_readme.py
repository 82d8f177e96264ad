"""Figures of the README are those of the files that they come from."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = " ".join((ROOT / "README.md").read_text().split())


def test_the_number_of_recorded_answers_is_true():
    answers = json.loads((ROOT / "test/golden/data/api-answers.json").read_text())
    assert f"{len(answers):,} recorded answers" in README


def test_the_number_of_runs_of_clients_and_of_failed_checks_is_true():
    table = (ROOT / "doc/reference/clients.md").read_text()
    failed = [int(count) for count in re.findall(r"^\| [^|]+ \| [^|]+ \| \d+ \| (\d+) \|", table, re.M)]
    assert f"[{len(failed)} runs of client programs" in README
    assert f"{failed.count(0)} without a failure; the {sum(failed)} failed checks" in README


def test_the_figures_of_speed_are_those_of_one_server_with_six_devices():
    page = (ROOT / "doc/explanation/performance.md").read_text()
    page = page.partition("\n### One server with six devices\n")[2].partition("\n### ")[0]
    replicated, erasure_coded = page.split("Erasure coded 4+2")

    def ratios(part, verb, sizes):
        rows = rf"^\| {verb} (?:{sizes}) KiB c\d+ \|.*?\*\*([\d.]+)x\*\*"
        return sorted(re.findall(rows, part, re.M), key=float)

    puts, gets = ratios(replicated, "PUT", "1|10|64"), ratios(replicated, "GET", "1|10|64")
    (coded,) = ratios(erasure_coded, "PUT", "1")
    assert f"PUT up to 64 KiB {puts[0]} to {puts[-1]} times" in README
    assert f"GET {gets[0]} to {gets[-1]} times" in README
    assert f"erasure coded (4+2) PUT of 1 KiB {coded} times" in README
