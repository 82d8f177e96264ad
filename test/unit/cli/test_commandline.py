"""Every command says which version it is."""

import contextlib
import io

import pytest

from swift import DISTRIBUTION, __version__
from swift.cli import ring_builder
from swift.cli.commands import COMMANDS
from swift.cli.manpages import parser_of

BY_HAND = ("swift-ring-builder", "swift-ring-builder-safe")


def said(call):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = call()
    return out.getvalue(), code


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - set(BY_HAND)))
def test_a_command_says_its_version(command):
    parser = parser_of(command)

    def run():
        with pytest.raises(SystemExit) as end:
            parser.parse_args(["--version"])
        return end.value.code

    assert said(run) == (f"{command} ({DISTRIBUTION} {__version__})\n", 0)


def test_the_ring_builder_says_its_version_as_well():
    text, code = said(lambda: ring_builder.main(["--version"]))
    assert text.endswith(f" ({DISTRIBUTION} {__version__})\n") and code == 0
