"""systemd itself finds nothing to say about any unit that we generate."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.generate.units import BIN, files

ROOT = Path(__file__).parents[3]
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze of the package systemd"
)


def verify(folder, change=lambda text: text):
    """What ``systemd-analyze verify`` says of all units, templates as instance ``1``, and its exit code."""
    programs = folder / "bin"
    programs.mkdir()
    names = []
    for path, text in files(ROOT):
        text = change(text).replace(f"{BIN}/swift", f"{programs}/swift")
        for program in re.findall(rf"{programs}/[^ \n]*", text):
            shutil.copy("/bin/true", program)
        names.append(path.name.replace("@.", "@1."))
        (folder / names[-1]).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *names],
        cwd=folder,
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr, done.returncode


@needs_systemd
def test_every_unit_is_one_that_systemd_takes_without_a_word(tmp_path):
    assert verify(tmp_path) == ("", 0)


@needs_systemd
@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("LockPersonality=", "LockPersonalities=", "Unknown key"),
        ("KillMode=mixed", "KillMode=some", "Failed to parse kill mode"),
        (f"ExecStart={BIN}/swift", "ExecStart=/nowhere/swift", "is not executable"),
    ],
)
def test_a_mistake_in_a_unit_is_found(tmp_path, good, bad, said):
    text, _code = verify(tmp_path, lambda text: text.replace(good, bad))
    assert said in text
