"""Samples and reference pages from the declared options."""

from dataclasses import dataclass

import pytest

from swift.config.kinds import COUNT
from swift.config.schema import Settings, option
from tools.generate.render import Sample, Section, reference_text, sample_text


@dataclass(frozen=True)
class Kitchen(Settings):
    """Options of a kitchen."""

    stoves: int = option(2, "How many stoves | ovens there are.", kind=COUNT)
    cook: str = option("", "Who cooks.")
    heat: int = option(-1, "How hot.", sample="as the oven")


@dataclass(frozen=True)
class Cellar(Settings):
    """Options of a cellar, one of which the kitchen has too."""

    stoves: int = option(0, "Never seen.", kind=COUNT)
    bottles: int = option(9, "How many bottles. " + "Long words " * 20, kind=COUNT)


@pytest.fixture
def sample():
    section = Section("app:house", (Kitchen, Cellar), ("use = egg:house",), "A note.")
    return Sample("house.conf-sample", "About houses.", (section, Section("empty")))


def test_a_sample_shows_every_option_commented_out_with_its_default(sample):
    lines = sample_text(sample).splitlines()
    assert lines[0] == "# About houses."
    assert lines.index("[app:house]") < lines.index("use = egg:house") < lines.index("# stoves = 2")
    assert "# cook =" in lines and "# heat = as the oven" in lines and "# bottles = 9" in lines
    assert all(line.startswith(("#", "[", "use")) or not line for line in lines)
    assert max(map(len, lines)) <= 98


def test_an_option_of_two_classes_is_shown_once(sample):
    assert sample_text(sample).count("stoves = ") == 1
    assert "Never seen" not in sample_text(sample)


def test_the_reference_is_a_table_for_each_section_that_has_options(sample):
    page = reference_text([sample])
    assert "### `[app:house]`" in page and "[empty]" not in page
    assert "| `cook` | text | (empty) | Who cooks. |" in page
