"""swift-ring-composer shows and makes composite rings, and explains what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from swift.cli import ring_composer
from swift.ring.builder import RingBuilder
from swift.ring.ring import Ring

GOLDEN = Path(__file__).parent.parent.parent / "golden" / "data" / "rings"


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("h1.builder", "h2.builder", "h.composite"):
        shutil.copyfile(GOLDEN / name, tmp_path / name)
    builder = RingBuilder.load("h1.builder")
    builder.rebalance(seed=1)
    builder.save("h1.builder")
    return tmp_path


def test_show_prints_what_the_ring_was_made_of(place, capsys):
    assert ring_composer.main(["h.composite", "show"]) == 0
    captured = capsys.readouterr()
    shown = json.loads(captured.out)
    assert [part["version"] for part in shown["components"]] == [4, 3]
    assert "saved_path" not in shown
    assert "NOTE: This tool is for experimental use" in captured.err


def test_a_ring_is_composed_and_composed_again(place, capsys):
    argv = ["c", "compose", "h1.builder", "h2.builder", "--output", "c.ring.gz"]
    assert ring_composer.main(argv) == 0
    assert Ring("c.ring.gz").view().replica_count == 3
    before = (place / "c").read_bytes(), (place / "c.ring.gz").read_bytes()
    assert ring_composer.main(["c", "compose", "--output", "c.ring.gz"]) == 2
    assert "None of the component builders has been modified" in capsys.readouterr().err
    assert ((place / "c").read_bytes(), (place / "c.ring.gz").read_bytes()) == before
    assert ring_composer.main(["c", "compose", "--output", "c.ring.gz", "--force", "--dry-run"]) == 0
    assert (place / "c").read_bytes() == before[0]
    assert ring_composer.main(["c", "compose", "--output", "c.ring.gz", "--force"]) == 0
    assert json.loads((place / "c").read_text())["version"] == 2


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["nosuch", "show"], "No such file or directory"),
        (["h1.builder", "show"], "File does not contain valid composite ring data"),
        (["c", "compose", "h1.builder", "nosuch", "--output", "x"], "Ring Builder file does not exist"),
        (["c", "compose", "--output", "x"], "Two or more component builders are required"),
        (["c", "compose", "h1.builder", "h.composite", "--output", "x"], "h.composite: "),
        (["h.composite", "compose", "--output", "x"], "/etc/swift/h1.builder"),
    ],
)
def test_what_is_refused_is_explained_and_leaves_no_file(place, capsys, argv, sentence):
    before = sorted(place.iterdir())
    assert ring_composer.main(argv) == 2
    assert sentence in capsys.readouterr().err
    assert sorted(place.iterdir()) == before


@pytest.mark.parametrize("argv", [[], ["c"], ["c", "compose"], ["c", "bogus"]])
def test_wrong_usage_is_one_line_and_exit_code_2(place, capsys, argv):
    with pytest.raises(SystemExit) as stopped:
        ring_composer.main(argv)
    assert stopped.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("argv", [["--help"], ["c", "show", "--help"], ["c", "compose", "--help"]])
def test_help_has_an_example(capsys, argv):
    with pytest.raises(SystemExit) as stopped:
        ring_composer.main(argv)
    assert stopped.value.code == 0
    assert "Example: swift-ring-composer object.composite" in capsys.readouterr().out
