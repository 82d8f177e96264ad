"""The memory of daemons is measured over trees that are made for it, and gone afterwards."""

import json
import subprocess
import sys

import pytest

from tools.bench.memory import main


@pytest.mark.long
def test_every_daemon_makes_a_pass_and_nothing_is_left(tmp_path):
    root = tmp_path / "trees"
    root.mkdir()
    words = ["--objects", "20", "--root", str(root), "--json", str(tmp_path / "memory.json")]
    # In a process of its own: those that it forks begin with its memory.
    done = subprocess.run(
        [sys.executable, "-m", "tools.bench.memory", *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    peaks = json.loads((tmp_path / "memory.json").read_text())["peaks"]
    names = ["object-replicator", "object-auditor", "object-updater", "object-expirer"]
    assert [peak["daemon"] for peak in peaks] == names
    assert all(10 < peak["mib"] < 500 and peak["objects"] == 20 for peak in peaks)
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("words", [["--objects", "0"], ["--objects", "many"], ["--daemons", "proxy"]])
def test_what_cannot_be_measured_is_refused(words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert "error: argument" in capsys.readouterr().err
