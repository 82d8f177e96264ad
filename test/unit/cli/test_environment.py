"""bin/_environment: what the launchers install, also after an installation that was interrupted."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "bin" / "_environment"
PYTHON = """#!/bin/sh
[ "$1" = -c ] && exit 0
mkdir -p "$3/bin" && touch "$3/pyvenv.cfg"
printf '#!/bin/sh\\necho $$ >>%s/pips\\n[ ! -p %s/held ] || { echo x >%s/held; exec sleep 60; }\\n' \
    "$CHECKOUT" "$CHECKOUT" "$CHECKOUT" >"$3/bin/pip"
chmod +x "$3/bin/pip"
"""


@pytest.fixture
def checkout(tmp_path):
    """A checkout with a Python whose pip installs nothing, and waits while ``held`` is a pipe."""
    for name in ("bin", "swift/cli", "swift/config", "swift/platform"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copy(SCRIPT, tmp_path / "bin" / "_environment")
    for name in ("setup.py", "swift/platform/native.c", "swift/config/declared.json", "requirements.txt"):
        (tmp_path / name).touch()
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "bin" / "launch").write_text(
        'set -euo pipefail; . "$(dirname "$0")/_environment"; clients=$*; '
        'ensure_environment "$here/requirements.txt"'
    )
    return tmp_path


def launch(checkout, *clients):
    """Start the launcher; its messages go to a file, because interrupted children could keep a pipe open."""
    env = {
        **os.environ,
        "PYTHON": str(checkout / "python"),
        "CHECKOUT": str(checkout),
        "TMPDIR": str(checkout),
    }
    env.pop("SWIFT_VENV", None)
    with open(checkout / "messages", "w") as messages:
        command = ["bash", str(checkout / "bin" / "launch"), *clients]
        return subprocess.Popen(command, env=env, stderr=messages)


def messages_of(checkout):
    return (checkout / "messages").read_text().splitlines()


@pytest.mark.long
def test_every_command_of_the_installation_exists(checkout):
    assert launch(checkout).wait(60) == 0
    assert len(messages_of(checkout)) == 2 and messages_of(checkout)[1].startswith("installing what it needs")
    assert (checkout / ".venv" / ".stamp-1").exists()
    # The first command compiles its modules.
    (checkout / "swift/cli/__pycache__").mkdir()
    assert launch(checkout).wait(60) == 0
    assert messages_of(checkout) == []
    (checkout / "swift/cli/added.py").touch()
    assert launch(checkout).wait(60) == 0
    assert messages_of(checkout)[-1].startswith("installing what it needs")


@pytest.mark.long
def test_packages_that_one_start_needs_are_installed_into_an_environment_that_has_the_others(checkout):
    for clients in ([], ["lmdb"], ["lmdb", "other"]):
        assert launch(checkout, *clients).wait(60) == 0
        assert messages_of(checkout)[-1].startswith("installing what it needs")
    for clients in ([], ["lmdb"]):
        assert launch(checkout, *clients).wait(60) == 0
        assert messages_of(checkout) == []


@pytest.mark.long
def test_an_interrupted_installation_leaves_no_process_and_begins_again(checkout):
    os.mkfifo(checkout / "held")
    launcher = launch(checkout)
    (checkout / "held").read_bytes()
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(60) == 128 + signal.SIGTERM
    assert messages_of(checkout)[-1] == "launch: interrupted; the same command begins again"
    with pytest.raises(ProcessLookupError):
        os.kill(int((checkout / "pips").read_text()), 0)
    assert not list(checkout.glob("tmp.*"))
    (checkout / "held").unlink()
    (checkout / ".venv" / "lib").mkdir()
    (checkout / ".venv" / "lib" / "half").touch()
    assert launch(checkout).wait(60) == 0
    assert messages_of(checkout)[0].startswith("making a virtual environment")
    assert not (checkout / ".venv" / "lib").exists() and not (checkout / ".venv" / ".unfinished").exists()
