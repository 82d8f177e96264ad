"""What is kept, for whom and how long: rules that decide without doing anything."""

from __future__ import annotations

import pytest

from swift.store.tier.policy import (
    CLASSES,
    DATA,
    DEFERRABLE,
    HASHES,
    METADATA,
    MODES,
    PASS_THROUGH,
    SMALL_DATA,
    ClassRules,
    Refused,
    RequestedKeys,
    WriteBudget,
    check_mode,
    next_evicted,
)


def rules(metadata=(1, 100), hashes=(2, 50), **more):
    made = {METADATA: metadata, HASHES: hashes, **more}
    return {name: ClassRules("write-through", *each) for name, each in made.items() if each}


@pytest.mark.parametrize("of", CLASSES)
@pytest.mark.parametrize("mode", MODES)
def test_only_what_can_be_computed_anew_may_be_on_the_disk_later(of, mode):
    if MODES[mode].defers and of != HASHES:
        with pytest.raises(Refused, match="would be lost with the SSD"):
            check_mode(of, mode)
    else:
        check_mode(of, mode)
    assert frozenset((HASHES,)) == DEFERRABLE


@pytest.mark.parametrize("mode", ["", "Write-Through", "write-through ", "none"])
def test_a_mode_that_is_none_is_told_with_those_that_there_are(mode):
    with pytest.raises(Refused, match="there are write-through, write-around"):
        check_mode(METADATA, mode)


def test_what_passes_through_is_neither_read_nor_kept():
    means = ClassRules(PASS_THROUGH, 1, 100).means
    assert not (means.serves or means.fills or means.defers)
    assert means.on_write == "drop"


def test_while_all_fits_into_the_common_room_nobody_gives():
    assert next_evicted({}, rules()) is None
    assert next_evicted({METADATA: 0, HASHES: 150}, rules()) is None, "one may use what the other does not"
    assert next_evicted({METADATA: 100, HASHES: 51}, rules()) is not None


@pytest.mark.parametrize(
    ("used", "priorities", "victim"),
    [
        ({METADATA: 100, HASHES: 51}, (1, 2), HASHES),
        ({METADATA: 100, HASHES: 51}, (2, 1), METADATA),
        ({METADATA: 151, HASHES: 0}, (1, 2), METADATA),
        ({METADATA: 0, HASHES: 151}, (2, 1), HASHES),
    ],
)
def test_the_least_important_gives_that_has_anything(used, priorities, victim):
    assert next_evicted(used, rules((priorities[0], 100), (priorities[1], 50))) == victim


def test_a_class_that_is_off_gives_before_any_other():
    assert next_evicted({METADATA: 10, HASHES: 51}, rules(metadata=None)) == METADATA
    assert next_evicted({METADATA: 1, HASHES: 1}, {}) in (METADATA, HASHES)


def test_bodies_take_no_room_of_the_index():
    big = {SMALL_DATA: (1, 1000), DATA: (1, 1000)}
    assert next_evicted({METADATA: 100, HASHES: 51, DATA: 0}, rules(**big)) == HASHES
    assert next_evicted({METADATA: 1, HASHES: 1, DATA: 5000, SMALL_DATA: 5000}, rules(**big)) is None


def test_the_second_touch_is_told_once():
    touches = RequestedKeys()
    assert [touches.is_second(b"a") for _ in range(4)] == [False, True, False, True]
    assert not touches.is_second(b"b")


def test_only_so_many_touches_are_remembered_the_latest_ones():
    touches = RequestedKeys(kept_max=2)
    for key in (b"a", b"b", b"c"):
        assert not touches.is_second(key)
    assert touches.is_second(b"b") and touches.is_second(b"c")
    assert not touches.is_second(b"a"), "it was forgotten"


@pytest.mark.parametrize(
    ("limit", "written", "more", "may"), [(10, 5, 5, True), (10, 5, 6, False), (0, 10**15, 1, True)]
)
def test_a_day_has_so_many_bytes_and_none_means_any_number(limit, written, more, may):
    assert WriteBudget(limit).allows(written, more) == may
