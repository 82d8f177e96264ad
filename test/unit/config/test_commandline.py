"""Every command says which version it is, and its help has examples that can be pasted."""

import io
import json
import re
import subprocess
import sys

import pytest

from swift import DISTRIBUTION, __version__
from swift.cli import ring_builder
from swift.config.commandline import CommandLine, ProgressLine
from swift.entry import commands
from swift.platform.nativedisk import native_module

SERVERS = [f"swift-{kind}-server" for kind in ("account", "container", "object", "proxy")]
BY_HAND = ("swift-ring-builder", "swift-ring-builder-safe")
#: A process of its own: commands of the servers patch the standard library for the event loop.
SCRIPT = """
from swift import green
import contextlib, io, json, sys
from tools.generate.manpages import parser_of
said = {"helps": {name: parser_of(name).format_help() for name in sys.argv[1:]}}
for command in sys.argv[1:]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        parser_of(command).parse_args(["--version"])
    said[command] = out.getvalue()
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said():
    names = sorted(set(commands()) - set(BY_HAND))
    done = subprocess.run([sys.executable, "-c", SCRIPT, *names], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("command", sorted(set(commands()) - set(BY_HAND)))
def test_a_command_says_its_version(said, command):
    more = f", {'with' if native_module() else 'without'} native disk calls" if command in SERVERS else ""
    assert said[command] == f"{command} ({DISTRIBUTION} {__version__}{more})\n"


def test_examples_of_help_have_one_line_each(said):
    for command, text in said["helps"].items():
        examples = re.split(r"(?im)^examples?:", text)[-1]
        lines = [line.split() for line in examples.splitlines() if line.strip()]
        # A line that was broken begins with the rest of a command.
        broken = [line for line in lines if line[0] not in commands() and line[0] != "sudo"]
        assert lines and broken == [], command


def test_descriptions_are_wrapped_and_texts_with_lines_are_not():
    parser = CommandLine("x", description="word " * 60, epilog="columns:\n  a   b\n\nexamples:\n  x a   b")
    lines = parser.format_help().splitlines()
    assert max(map(len, lines)) < 100
    assert lines[-5:] == ["columns:", "  a   b", "", "examples:", "  x a   b"]


def test_the_ring_builder_says_its_version_as_well(capsys):
    assert ring_builder.main(["--version"]) == 0
    assert capsys.readouterr().out.endswith(f" ({DISTRIBUTION} {__version__})\n")


def test_progress_rewrites_one_line_of_a_terminal_and_leaves_none():
    now = [0.0]
    for is_terminal in (True, False):
        out = io.StringIO()
        out.isatty = lambda shown=is_terminal: shown
        line = ProgressLine(out, every_s=0.5, clock=lambda: now[0])
        line.show("1 of 10")
        line.show("2 of 10")
        now[0] += 1
        line.show("5 of 10")
        line.clear()
        assert out.getvalue() == ("\r\x1b[K1 of 10\r\x1b[K5 of 10\r\x1b[K" if is_terminal else "")
