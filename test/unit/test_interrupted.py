"""A test run that is told to end ends what it has started."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
CASE = """
import os, pathlib, signal
import pytest

@pytest.fixture
def started():
    yield
    pathlib.Path({mark!r}).touch()

def test_something(started):
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()
"""


def test_after_a_sigterm_fixtures_are_ended(tmp_path):
    mark, case = tmp_path / "ended", tmp_path / "test_case.py"
    case.write_text(CASE.format(mark=str(mark)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "test.conftest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(case)],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done.stdout
    assert mark.exists()
