"""Every command of the distribution: what it says of itself, and what it says when it cannot begin."""

from __future__ import annotations

import re
from importlib.metadata import distribution

import pytest

from swift import DISTRIBUTION
from swift.config.declared import daemons
from swift.entry import commands
from swift.runtime.service.services import MAIN_SERVERS
from test.support.peer import run

#: Run on the configuration of a server or daemon, which they must have.
CONFIGURED = [f"swift-{name}" for name in (*MAIN_SERVERS, *daemons())]


@pytest.mark.parametrize("command", commands())
def test_help_names_the_command_and_shows_how_it_is_used(command):
    done = run(command, "--help")
    assert done.returncode == 0 and done.stderr == ""
    said = done.stdout.lower()
    assert "usage:" in said or "swift-ring-builder <builder_file>" in said
    # A command that goes by two names shows itself by the first.
    names = {name for name, module in commands().items() if module == commands()[command]}
    shown = re.split(r"examples?\b|quick start", said)[1:]
    assert any(re.search(rf"(?m)^.*\b{re.escape(name)}\s+\S", text) for text in shown for name in names)


@pytest.mark.parametrize("command", CONFIGURED)
def test_a_configuration_that_is_not_there_is_told_in_one_line(command, tmp_path):
    done = run(command, str(tmp_path / "none.conf"))
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1] if done.stderr else done.stdout.strip().splitlines()[-1]
    assert "none.conf" in last and "Traceback" not in done.stdout + done.stderr


def test_exactly_these_commands_are_installed():
    scripts = distribution(DISTRIBUTION).entry_points.select(group="console_scripts")
    assert {script.name: script.value for script in scripts} == {
        name: f"swift.entry:{name.replace('-', '_')}" for name in commands()
    }
