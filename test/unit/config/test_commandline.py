"""Every command says which version it is."""

import json
import subprocess
import sys

import pytest

from swift import DISTRIBUTION, __version__
from swift.cli import ring_builder
from swift.entry import commands

BY_HAND = ("swift-ring-builder", "swift-ring-builder-safe")
#: A process of its own: commands of the servers patch the standard library for the event loop.
SCRIPT = """
from swift import green
import contextlib, io, json, sys
from tools.generate.manpages import parser_of
said = {}
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
    assert said[command] == f"{command} ({DISTRIBUTION} {__version__})\n"


def test_the_ring_builder_says_its_version_as_well(capsys):
    assert ring_builder.main(["--version"]) == 0
    assert capsys.readouterr().out.endswith(f" ({DISTRIBUTION} {__version__})\n")
