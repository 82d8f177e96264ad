"""Every option that is declared has an effect: somebody asks for its value."""

import ast
from pathlib import Path

import pytest

from swift.base.errors import ConfigError
from test.support.checks import check_each
from test.support.sources import nodes_of
from tools.generate.samples import SAMPLES

ROOT = Path(__file__).parents[2]
#: Sections whose options are put together from a verb or a class: name → how they are looked up.
COMPOSED = {"BackendRatelimitSettings": "{}_requests_per_device_per_second", "TierSettings": "{}_{}"}


def words() -> set[str]:
    """Every attribute and every text of the code, but for the declarations' own texts."""
    found = set()
    for path in (ROOT / "swift").rglob("*.py"):
        for node in nodes_of(path):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def declared() -> set[tuple[type, str]]:
    """Each section's class with the names of its options."""
    sections = (section for sample in SAMPLES for section in sample.sections)
    return {
        (settings, option.name)
        for section in sections
        for settings in section.settings
        for option in settings.options()
    }


def test_every_option_is_asked_for_somewhere():
    known = words()
    idle = [
        f"{settings.__name__}.{name}"
        for settings, name in declared()
        if name not in known and settings.__name__ not in COMPOSED
    ]
    assert not idle, "an option that nobody reads promises what does not happen"


def numbers(settings):
    """The names of a section's options that are numbers."""
    return [option.name for option in settings.options() if option.kind.name in ("integer", "number")]


def test_a_number_that_is_none_is_refused_by_the_name_of_its_option():
    sections = {settings for settings, _ in declared()}
    cases = [(settings, name) for settings in sections for name in numbers(settings)]

    def check(case):
        settings, name = case
        for text in ("nan", "", "1 2", "x" * 5000):
            with pytest.raises(ConfigError, match=rf"^here: option {name} must be "):
                settings.parse({name: text}, source="here")

    check_each(cases, check)
