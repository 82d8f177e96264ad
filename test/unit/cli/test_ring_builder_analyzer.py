"""swift-ring-builder-analyzer plays scenarios and points at the mistake in a bad one."""

from __future__ import annotations

import json

import pytest

from swift.cli import ring_builder_analyzer
from swift.ring.builder import RingBuilder

DEVICE = "r1z1-10.0.0.1:6200/sda"
SCENARIO = {
    "part_power": 4,
    "replicas": 3,
    "overload": 0.1,
    "random_seed": 203488,
    "rounds": [
        [
            ["add", DEVICE, 100],
            ["add", "r1z1-10.0.0.1:6200/sdb", 100],
            ["add", "r1z2-10.0.0.2:6200/sda", 300],
        ],
        [["remove", 1], ["add", "z2-10.0.0.2:6200/sdb", 100], ["set_weight", 0, 200]],
    ],
}
# What upstream printed for this scenario.
PLAYED = """Round 1
\tRebalance 1: moved 48 parts, balance is 66.666667, 0 removed devs
\tRebalance 2: moved 0 parts, balance is 66.666667, 0 removed devs
Round 2
\tRebalance 1: moved 16 parts, balance is 100.000000, 1 removed devs
\tRebalance 2: moved 0 parts, balance is 100.000000, 0 removed devs
"""


@pytest.fixture
def scenario(tmp_path):
    def write(content) -> str:
        path = tmp_path / "scenario.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return write


def test_a_scenario_is_played_round_by_round(scenario, capsys):
    assert ring_builder_analyzer.main([scenario(SCENARIO)]) == 0
    assert capsys.readouterr().out == PLAYED


def test_checking_plays_nothing(scenario, capsys):
    assert ring_builder_analyzer.main(["--check", scenario(SCENARIO)]) == 0
    assert capsys.readouterr().out == ""


def test_the_report_can_be_json(scenario, capsys):
    assert ring_builder_analyzer.main(["--format", "json", scenario(SCENARIO)]) == 0
    rounds = json.loads(capsys.readouterr().out)
    assert [[step["moved"] for step in steps] for steps in rounds] == [[48, 0], [16, 0]]


def test_a_builder_is_saved_on_request(scenario, tmp_path):
    saved = str(tmp_path / "out.builder")
    rounds = [*SCENARIO["rounds"], [["save", saved]]]
    assert ring_builder_analyzer.main([scenario({**SCENARIO, "rounds": rounds})]) == 0
    assert len(RingBuilder.load(saved).live_devs) == 3


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "Invalid JSON in scenario file"),
        ("[]", "Scenario must be a JSON object, not array or string"),
        ({}, "part_power missing"),
        ({**SCENARIO, "part_power": 40}, "part_power must be between 1 and 32, but was 40"),
        ({**SCENARIO, "part_power": "x"}, "part_power not an integer"),
        ({**SCENARIO, "replicas": 0.5}, "replicas must be at least 1, but is 0.500000"),
        ({**SCENARIO, "overload": -1}, "overload must be non-negative, but is -1.000000"),
        ({**SCENARIO, "rounds": {}}, "rounds must be an array"),
        ({**SCENARIO, "rounds": [1]}, "round 0 not an array"),
        ({**SCENARIO, "rounds": [[["add"]]]}, "(round 0, command 0): expected array of length 3"),
        ({**SCENARIO, "rounds": [[["bogus", 1]]]}, "Unknown command (round 0, command 0): 'bogus'"),
        ({**SCENARIO, "rounds": [[["add", "qq", 3]]]}, "(round 0, command 0): Invalid add value: qq"),
        ({**SCENARIO, "rounds": [[["set_weight", "a", 7]]]}, "Invalid device ID in set_weight"),
        ({**SCENARIO, "rounds": [[[["add"], 1]]]}, "Unknown command (round 0, command 0): ['add']"),
        ({**SCENARIO, "rounds": [[["remove", 1e999]]]}, "Invalid device ID in remove (round 0, command 0)"),
        ({**SCENARIO, "rounds": [[["add", DEVICE, 10**400]]]}, "Invalid weight (round 0, command 0)"),
        ({**SCENARIO, "rounds": [[["add", DEVICE, -1]]]}, "cannot be negative"),
        ({**SCENARIO, "rounds": [[["set_weight", 0, 1e999]]]}, "must be finite"),
        ({**SCENARIO, "rounds": [[["set_weight", 0, "nan"]]]}, "must be finite"),
        ({**SCENARIO, "rounds": [[["save", "a\0b"]]]}, "Invalid file in save (round 0, command 0)"),
        ({**SCENARIO, "rounds": [[["save", ["a"]]]]}, "Invalid file in save (round 0, command 0)"),
        ({**SCENARIO, "rounds": [[["remove", 7]]]}, "There is no device with id 7"),
    ],
)
def test_a_bad_scenario_is_one_line_and_exit_code_1(scenario, capsys, content, reason):
    assert ring_builder_analyzer.main([scenario(content)]) == 1
    captured = capsys.readouterr()
    assert reason in captured.err
    assert captured.err.count("\n") == 1


def test_a_missing_file_is_exit_code_1(capsys):
    assert ring_builder_analyzer.main(["nosuch.json"]) == 1
    assert "Error opening scenario nosuch.json" in capsys.readouterr().err
