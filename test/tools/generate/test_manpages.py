"""The table of commands has each of them with its usage."""

from swift.entry import commands
from tools.generate.manpages import commands_text


def test_every_command_is_in_the_table_with_its_usage():
    rows = [line for line in commands_text().split("\n") if line.startswith("| `swift-")]
    assert [row.split("`")[1] for row in rows] == sorted(commands())
    for row in rows:
        name, does, usage = row.strip("| ").split(" | ")
        assert len(does.split()) > 2, name
        # ring-builder-safe is ring-builder under another name.
        assert usage.startswith(name[:-1].removesuffix("-safe")), name
