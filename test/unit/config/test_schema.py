"""Options are declared once; what is not one of them, or has a bad value, is told by its name."""

from dataclasses import FrozenInstanceError, dataclass

import pytest

from swift.base.errors import ConfigError
from swift.config.kinds import COUNT, SECONDS, TEXT_KIND, TRUTH, choice
from swift.config.schema import Settings, option


@dataclass(frozen=True)
class Kitchen(Settings):
    """Options of a kitchen."""

    stoves: int = option(2, "How many.", kind=COUNT)
    cook: str = option("", "Who cooks.", aliases=("chef", "boss"))
    is_open: bool = option(False, "Whether it is open.")
    heat: float = option(1.5, "How hot.")
    guests: tuple[str, ...] = option((), "Who comes.")
    pause: float = option("60", "Rest.", kind=SECONDS)
    style: str = option("fried", "How.", kind=choice("fried", "raw"))
    shown: int = option(4, "As many as cores.", sample="the number of cores")


def test_what_is_not_said_is_as_declared():
    made = Kitchen.parse({})
    assert (made.stoves, made.cook, made.is_open, made.guests, made.pause, made.style) == (
        *(2, "", False, (), 60.0),
        "fried",
    )
    with pytest.raises(FrozenInstanceError):
        made.stoves = 3


def test_text_becomes_values():
    made = Kitchen.parse({"stoves": "3", "is_open": "yes", "heat": "2", "guests": "a, b", "pause": "1.5"})
    assert (made.stoves, made.is_open, made.heat, made.guests, made.pause) == (3, True, 2.0, ("a", "b"), 1.5)


def test_an_option_may_have_other_names_and_its_own_comes_first():
    assert Kitchen.parse({"boss": "c", "chef": "b"}).cook == "b"
    assert Kitchen.parse({"boss": "c", "cook": "a"}).cook == "a"
    assert {"cook", "chef", "boss", "stoves"} <= Kitchen.known_names()


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"stoves": "-1"}, "stoves"),
        ({"stoves": ""}, "stoves"),
        ({"stoves": "9" * 5000}, "stoves"),
        ({"stoves": "²"}, "stoves"),
        ({"heat": "warm"}, "heat"),
        ({"pause": "nan"}, "pause"),
        ({"pause": "-1"}, "pause"),
        ({"style": "boiled"}, "style"),
    ],
)
def test_a_bad_value_is_told_with_its_place_and_name(values, named):
    with pytest.raises(ConfigError, match=rf"^k\.conf \[kitchen\]: option {named} "):
        Kitchen.parse(values, source="k.conf [kitchen]")
    with pytest.raises(ConfigError, match=f"^option {named} "):
        Kitchen.parse(values)


def test_kinds_follow_from_defaults_and_samples_show_what_was_written():
    options = {each.name: each for each in Kitchen.options()}
    assert options["is_open"].kind is TRUTH and options["cook"].kind is TEXT_KIND
    assert (options["pause"].default, options["pause"].sample) == (60.0, "60")
    assert (options["shown"].default, options["shown"].sample) == (4, "the number of cores")
    assert list(options)[0] == "stoves"
