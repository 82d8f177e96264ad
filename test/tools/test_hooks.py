"""The commit hook keeps subjects short."""

import subprocess
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[2] / "tools/hooks/commit-msg"


@pytest.mark.process
@pytest.mark.parametrize(
    ("message", "refusal"),
    [
        ("Fail over from unresponsive servers\n\nReasons.", ""),
        ("# comment\nShort", ""),
        ("x" * 73, "73 characters"),
        ("It ends.", "full stop"),
        ("", "missing"),
    ],
)
def test_a_subject_that_is_too_long_is_refused(tmp_path, message, refusal):
    path = tmp_path / "message"
    path.write_text(message)
    done = subprocess.run([HOOK, path], capture_output=True, text=True, check=False)
    assert (done.returncode, refusal in done.stderr) == (1 if refusal else 0, True)
