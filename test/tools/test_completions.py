"""The completions of bash offer what a command takes, and zsh reads its file."""

import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "etc" / "completions"
ASK = """
source {file}
COMP_WORDS=({words}) COMP_CWORD={number}
_swift_complete 2>/dev/null
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed(*words, folder):
    quoted = " ".join(f"'{word}'" for word in words)
    script = ASK.format(file=FOLDER / "swift.bash", words=quoted, number=len(words) - 1)
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("swift-aio", "st"), ["start", "status", "stop"]),
        (("/usr/bin/swift-aio", "start", "--por"), ["--port"]),
        (("swift-init", "object-up"), ["object-updater"]),
        (("swift-init", "object-updater", "shut"), ["shutdown"]),
        (("swift-ring-builder", "rebal"), ["rebalance"]),
        (("swift-health", "--format", ""), ["text", "json"]),
        (("swift-get-nodes", "obj"), ["object.ring.gz"]),
    ],
)
def test_words_options_and_values_are_offered(tmp_path, words, offered):
    (tmp_path / "object.ring.gz").touch()
    assert completed(*words, folder=tmp_path) == offered


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_reads_its_file():
    subprocess.run(["zsh", "-n", FOLDER / "_swift"], check=True)
