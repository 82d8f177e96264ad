"""Both sides of a bench: what is printed and kept, and what fails with one line."""

import argparse
import json
from dataclasses import dataclass

import pytest

from swift.base.errors import ConfigError
from swift.bench.sides import TableRow, medians, print_figures


@dataclass
class Speed:
    per_s: float


def table(ours, theirs):
    return f"{ours['x'].per_s} {theirs and theirs['x'].per_s}"


@pytest.fixture
def args(tmp_path):
    return argparse.Namespace(peer=None, root=tmp_path, json=tmp_path / "out.json")


def test_our_own_side_alone_is_printed_and_kept_and_its_folder_goes(args, capsys):
    seen = []

    def measure(folder, peer, _args):
        seen.append((folder, peer))
        folder.mkdir()
        return {"x": Speed(2.5)}

    assert print_figures("b", args, measure, table, rows=7) == 0
    assert capsys.readouterr().out == "2.5 None\n"
    kept = json.loads(args.json.read_text())
    assert (kept["rows"], kept["figures"]) == (7, {"ours": {"x": {"per_s": 2.5}}})
    assert {"machine", "python"} <= kept.keys()
    assert seen[0][1] is None and not seen[0][0].exists()


def test_what_cannot_be_measured_is_one_line(args, capsys):
    def measure(_folder, _peer, _args):
        raise ConfigError("no room")

    assert print_figures("b", args, measure, table) == 1
    assert capsys.readouterr().err == "b: no room\n"
    assert not args.json.exists()


def test_sides_are_measured_in_turn_and_each_once_first():
    order = []

    def measure(side):
        order.append(side)
        return len(order)

    assert medians(["ours", "theirs"], 3, measure) == [4, 3]
    assert order == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]


def test_a_row_tells_the_ratio():
    assert str(TableRow("GET", "per s", 30.0, 4.0, "5x")) == "| GET | per s | 30.00 | 4.00 | **7.50x** | 5x |"
    assert "**infx**" in str(TableRow("GET", "per s", 30.0, 0.0, ""))
