"""swift-ring-builder answers a recorded upstream session with the same texts and exit codes (ring.md §11).

Where a partition lands is each implementation's own choice, so numbers that follow from placement are not
compared; everything else is, to the letter.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from swift.cli import ring_builder
from swift.ring.commands.usage import USAGES

SESSION = Path(__file__).parent.parent / "data" / "rings" / "ring-builder-session.txt"
# The recorder printed this argument without the quotes that it was given in.
QUOTED = {"fourth one": "'fourth one'"}
TRACEBACK = "<traceback>"
#: Ours does not speak of releases of the peer that are to come.
FORMAT_NOTICE = r"The ring is written in format 1(.*\n){4}"
THEIR_FORMAT_NOTICE = r"Defaulting to --format-version=1(.*\n){4}"
DEPENDS_ON_PLACEMENT = re.compile(r"Devices:|Reassigned|Partition   Matches|Dispersion is|\d-byte IDs")


def recorded() -> list[tuple[str, str, int]]:
    """(command line, output, exit code) of every step."""
    steps = []
    for block in re.split(r"^\$ ", SESSION.read_text(), flags=re.MULTILINE)[1:]:
        line, _, rest = block.partition("\n")
        output, _, code = rest.rpartition("[exit ")
        steps.append((line, output, int(code.split("]")[0])))
    return steps


def run(line: str) -> tuple[str, int]:
    """What our command prints on both streams, and its exit code."""
    for words, quoted in QUOTED.items():
        line = line.replace(words, quoted)
    argv = line.split() if "\\" in line else shlex.split(line)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = ring_builder.main(argv[1:])
    return out.getvalue(), code


def normalized(text: str, *, placed: bool) -> str:
    """Without what differs from run to run, and, if it depends on placement, without numbers."""
    text = re.sub(r"\b[0-9a-f]{32}\b", "<id>", text)
    text = re.sub(f"{FORMAT_NOTICE}|{THEIR_FORMAT_NOTICE}", "<format notice>", text)
    text = re.sub(r"\d+:\d\d:\d\d remaining", "<time> remaining", text)
    if placed:
        text = re.sub(r"-?\d+(\.\d+)?%?", "#", text)
        text = re.sub(r" +", " ", text)
    return text.strip()


@pytest.fixture
def replay(tmp_path, monkeypatch):
    """The directory in which the session is replayed; nobody answers its questions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())


def test_the_recorded_session_is_answered_alike(replay):
    steps = recorded()
    assert len(steps) > 80
    for line, expected, expected_code in steps:
        output, code = run(line)
        assert code == expected_code, (line, output)
        if "<usage text>" in expected:
            name = line.split()[2]
            output = output.replace(USAGES[name].render(name), "<usage text>")
        if TRACEBACK in expected:
            # Upstream shows a traceback here; we show its last line and the file's name.
            assert expected.strip().rpartition(": ")[2] in output
            continue
        if line.split()[2:3] == ["list_parts"] and code == 0:
            assert output.splitlines()[0] == expected.splitlines()[0]
            assert all(re.fullmatch(r" *\d+ +1", row) for row in output.splitlines()[1:])
            continue
        if expected.startswith("Cowardly refusing to save rebalance"):
            # Our first rebalance left nothing to do, upstream's next to nothing: neither saves.
            assert output.startswith(("Cowardly refusing to save", "No partitions could be reassigned."))
            continue
        placed = bool(DEPENDS_ON_PLACEMENT.search(expected))
        assert normalized(output, placed=placed) == normalized(expected, placed=placed), line
