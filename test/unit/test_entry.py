"""Every command begins at one place, where it ends quietly when nobody reads what it says."""

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

import swift
from swift import entry
from swift.entry import READER_GONE, conflict

pytestmark = pytest.mark.process


def run_unread(command, *words):
    """Run the console script of a command with an output that nobody reads."""
    function = command.replace("-", "_")
    script = f"import sys; from swift.entry import {function} as main; sys.exit(main())"
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


class Installed:
    """A distribution in ``folder``."""

    version = "2.38.3"

    def __init__(self, folder):
        self.folder = folder

    def locate_file(self, path):
        return self.folder / path


def test_openstack_swift_in_the_same_place_is_a_conflict_that_says_what_to_do():
    ours = Path(swift.__file__).parents[1]
    told = conflict(lambda name: Installed(ours))
    assert "2.38.3" in told and f"pip uninstall swift {swift.DISTRIBUTION}" in told


def test_openstack_swift_elsewhere_or_nowhere_is_none(tmp_path):
    (tmp_path / "swift").mkdir()
    assert conflict(lambda name: Installed(tmp_path)) == ""
    assert conflict(lambda name: Installed(tmp_path / "away")) == ""

    def missing(name):
        raise PackageNotFoundError(name)

    assert conflict(missing) == ""


def test_the_distribution_has_a_name_of_its_own():
    assert distribution(swift.DISTRIBUTION).version == swift.__version__
    assert swift.DISTRIBUTION.lower() != "swift"


def test_ctrl_c_ends_a_command_without_a_traceback():
    script = (
        "import signal, sys, types; from swift import entry\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "main = lambda: signal.raise_signal(signal.SIGINT)\n"
        "sys.modules['swift.cli.endless'] = types.SimpleNamespace(main=main)\n"
        "sys.exit(entry.run('endless'))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (130, b"")
