"""Every command begins at one place, where it ends quietly when nobody reads what it says."""

import os
import subprocess
import sys

import pytest

from swift.cli import entry
from swift.cli.commands import COMMANDS
from swift.cli.entry import READER_GONE


def run_unread(command, *words):
    """Run the console script of a command with an output that nobody reads."""
    module, _, function = COMMANDS[command].partition(":")
    script = f"import sys; from {module} import {function} as main; sys.exit(main())"
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return subprocess.run(
            [sys.executable, "-c", script, *words],
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("swift-aio", ["--help"]),
        ("swift-ring-builder", []),
        ("swift-plan", ["capacity", "--help"]),
        ("swift-account-server", ["/none.conf"]),
    ],
)
def test_a_reader_that_has_gone_ends_a_command_without_a_word(command, words):
    done = run_unread(command, *words)
    assert (done.stderr, done.returncode) == (b"", READER_GONE)


def test_commands_have_their_names_with_underscores():
    assert callable(entry.swift_ring_builder)
    with pytest.raises(AttributeError, match="swift_nosuch"):
        _ = entry.swift_nosuch
