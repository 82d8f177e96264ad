"""Overload simulated, with admission and without (doc/explanation/planning.md)."""

import pytest

from swift.plan import overload
from swift.plan.errors import PlanError


@pytest.fixture(scope="module")
def found():
    setting = overload.parse_setting(["loads=20,90,150", "seconds=30"], seed=1)
    return {(each.load, each.is_admitting): each for each in overload.simulate_overload(setting)}


def test_below_what_the_devices_do_admission_changes_little(found):
    for load in (20, 90):
        without, admitted = found[load, False], found[load, True]
        assert admitted.goodput > 0.9 * without.goodput
    assert found[20, True].refused == 0


def test_without_admission_goodput_falls(found):
    assert found[150, False].goodput < 0.7 * found[90, False].goodput
    assert found[150, False].gave_up > 0


def test_with_admission_goodput_and_the_reservation_stand(found):
    assert found[150, True].goodput > 0.9 * found[90, False].goodput
    assert found[150, True].reserved > 0.95 * 30e6
    assert found[150, True].reserved_p99_s < found[150, False].reserved_p99_s
    assert found[150, True].refused > 0


def test_the_same_seed_says_the_same_again():
    setting = overload.parse_setting(["loads=120", "seconds=5"], seed=3)
    assert overload.simulate_overload(setting) == overload.simulate_overload(setting)


def test_without_a_reservation_there_is_none():
    setting = overload.parse_setting(["loads=100", "seconds=5", "reserved=0"], seed=3)
    assert {each.reserved for each in overload.simulate_overload(setting)} == {0.0}


@pytest.mark.parametrize(
    ("word", "message"),
    [("load=5", "names are"), ("loads=0", "from 1 to 1000"), ("reserved=0.9", "at most 0.8")],
)
def test_a_bad_word_is_named(word, message):
    with pytest.raises(PlanError) as error:
        overload.parse_setting([word], 0)
    assert message in str(error.value)
