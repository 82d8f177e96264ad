"""The help of the ring builder: each subcommand has its forms, its purpose and an example."""

import pytest

from swift.cli.ring_builder import COMMANDS
from swift.ring.commands.usage import PROGRAM, USAGES, everything


def test_exactly_the_commands_that_there_are_have_a_help():
    assert set(USAGES) == set(COMMANDS)


@pytest.mark.parametrize("name", sorted(USAGES))
def test_a_help_begins_with_its_forms_ends_with_an_example_and_fits_a_terminal(name):
    text = USAGES[name].render(name)
    lines = text.splitlines()
    assert lines[0].startswith(f"{PROGRAM} <builder_file> {name}")
    assert text.count(f"{PROGRAM} <builder_file> {name}") == len(USAGES[name].forms)
    assert lines[-1].startswith(f"    Example: {PROGRAM} object.builder {name}")
    assert lines[-2] == "" and all(line == line.rstrip() for line in lines)


def test_the_whole_help_has_every_one_and_the_exit_codes():
    text = everything()
    assert all(usage.render(name) in text for name, usage in USAGES.items())
    assert "Exit codes: 0 = success, 1 = done, with a warning, 2 = error" in text
    assert text.endswith(f"Quick list: {' '.join(sorted(USAGES))}")
