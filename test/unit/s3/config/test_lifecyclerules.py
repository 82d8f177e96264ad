"""When something is due: at the first midnight that is so many days away, by the rule that comes first."""

import pytest

from swift.s3.config.lifecyclerules import (
    DAY_S,
    TRANSITION_BYTES_MIN,
    LifecycleRule,
    Transition,
    due_noncurrent_storage_class,
    due_storage_class,
    expired_noncurrent_rules,
    find_expiry,
    is_delete_marker_expired,
    is_upload_expired,
    may_be_expired,
    midnight_after_days,
)

NOON = 100 * DAY_S + DAY_S // 2


@pytest.mark.parametrize(
    ("moment", "days", "due"),
    [(NOON, 1, 102), (100 * DAY_S, 1, 101), (100 * DAY_S + 0.00001, 1, 102), (NOON, 30, 131)],
)
def test_days_are_counted_to_the_next_midnight(moment, days, due):
    assert midnight_after_days(moment, days) == due * DAY_S


def test_the_rule_that_comes_first_decides():
    rules = [
        LifecycleRule("late", days=10),
        LifecycleRule("early", prefix="logs/", days=2),
        LifecycleRule("date", date=300 * DAY_S),
    ]
    assert find_expiry(rules, "logs/a", 1, NOON, {}) == (103 * DAY_S, "early")
    assert find_expiry(rules, "other", 1, NOON, {}) == (111 * DAY_S, "late")
    assert find_expiry([LifecycleRule("off", is_enabled=False, days=1)], "a", 1, NOON, {}) is None
    assert find_expiry([LifecycleRule("uploads", abort_days=1)], "a", 1, NOON, {}) is None


@pytest.mark.parametrize(
    ("key", "size", "tags", "expected"),
    [
        ("p/a", 11, {"a": "1", "b": "2", "c": "3"}, True),
        ("p/a", 11, {"a": "1"}, False),
        ("p/a", 11, {"a": "1", "b": "other"}, False),
        ("p/a", 10, {"a": "1", "b": "2"}, False),
        ("p/a", 20, {"a": "1", "b": "2"}, False),
        ("q/a", 11, {"a": "1", "b": "2"}, False),
    ],
)
def test_all_of_a_filter_must_hold(key, size, tags, expected):
    rule = LifecycleRule(
        "r", prefix="p/", tags=(("a", "1"), ("b", "2")), size_greater_than=10, size_less_than=20, days=1
    )
    assert (find_expiry([rule], key, size, NOON, tags) is not None) is expected


def test_without_its_tags_an_object_is_only_looked_at():
    rule = LifecycleRule("r", tags=(("a", "1"),), days=1)
    assert may_be_expired([rule], "k", 1, NOON, 102 * DAY_S)
    assert not may_be_expired([rule], "k", 1, NOON, 102 * DAY_S - 1)


def test_a_marker_ends_when_nothing_is_below_it_and_by_days_when_it_is_old():
    assert is_delete_marker_expired([LifecycleRule("r", expires_delete_markers=True)], "k", NOON, NOON)
    assert not is_delete_marker_expired([LifecycleRule("r", days=1)], "k", NOON, NOON)
    assert is_delete_marker_expired([LifecycleRule("r", days=1)], "k", NOON, 102 * DAY_S)
    assert not is_delete_marker_expired(
        [LifecycleRule("r", days=1, tags=(("a", "1"),))], "k", NOON, 102 * DAY_S
    )
    assert not is_delete_marker_expired(
        [LifecycleRule("r", prefix="p", expires_delete_markers=True)], "k", NOON, NOON
    )
    assert not is_delete_marker_expired([LifecycleRule("r", noncurrent_days=1)], "k", NOON, 1000 * DAY_S)


def test_of_former_versions_some_are_kept():
    rule = LifecycleRule("r", noncurrent_days=3, newer_versions=2)
    at = {"since_s": NOON, "now_s": 104 * DAY_S}
    assert expired_noncurrent_rules([rule], "k", 1, newer=2, **at) == [rule]
    assert expired_noncurrent_rules([rule], "k", 1, newer=1, **at) == []
    assert expired_noncurrent_rules([rule], "k", 1, newer=2, since_s=NOON, now_s=104 * DAY_S - 1) == []


def test_uploads_are_aborted_by_the_name_of_their_object():
    rules = [
        LifecycleRule("r", prefix="big/", abort_days=7),
        LifecycleRule("off", is_enabled=False, abort_days=1),
    ]
    assert is_upload_expired(rules, "big/a", NOON, 108 * DAY_S)
    assert not is_upload_expired(rules, "big/a", NOON, 108 * DAY_S - 1)
    assert not is_upload_expired(rules, "small", NOON, 1000 * DAY_S)


AGING = LifecycleRule("r", size_greater_than=0, transitions=(Transition("IA", 30), Transition("COLD", 90)))


@pytest.mark.parametrize(
    ("day", "kind", "expected"),
    [
        (130, "", ""),
        (131, "", "IA"),
        (131, "IA", ""),
        (131, "COLD", ""),
        (191, "", "COLD"),
        (191, "IA", "COLD"),
        (191, "COLD", ""),
        (191, "OTHER", ""),
    ],
)
def test_the_last_transition_that_was_due_counts_and_nothing_goes_back(day, kind, expected):
    assert due_storage_class([AGING], "k", 1, NOON, day * DAY_S, kind) == expected


def test_transitions_of_several_rules_are_one_way():
    rules = [LifecycleRule("a", size_greater_than=0, transitions=(Transition("COLD", 90),)), AGING]
    assert due_storage_class(rules, "k", 1, NOON, 131 * DAY_S, "") == "IA"
    assert (
        due_storage_class(
            [LifecycleRule("off", is_enabled=False, transitions=AGING.transitions)], "k", 1, 0, NOON, ""
        )
        == ""
    )


def test_small_objects_move_only_if_a_rule_speaks_of_sizes():
    rule = LifecycleRule("r", transitions=(Transition("COLD", 1),))
    assert due_storage_class([rule], "k", TRANSITION_BYTES_MIN - 1, 0, NOON, "") == ""
    assert due_storage_class([rule], "k", TRANSITION_BYTES_MIN, 0, NOON, "") == "COLD"
    assert (
        due_storage_class(
            [LifecycleRule("r", size_less_than=9, transitions=rule.transitions)], "k", 1, 0, NOON, ""
        )
        == "COLD"
    )


def test_the_tags_of_what_moves_are_looked_at_when_they_are_known():
    rule = LifecycleRule("r", size_greater_than=0, tags=(("a", "1"),), transitions=(Transition("COLD", 1),))
    assert due_storage_class([rule], "k", 1, 0, NOON, "") == "COLD"
    assert due_storage_class([rule], "k", 1, 0, NOON, "", {"a": "2"}) == ""
    assert due_storage_class([rule], "k", 1, 0, NOON, "", {"a": "1"}) == "COLD"


def test_of_former_versions_the_newest_stay_in_their_class():
    rule = LifecycleRule(
        "r", size_greater_than=0, noncurrent_transitions=(Transition("COLD", 1, newer_versions=2),)
    )
    assert due_noncurrent_storage_class([rule], "k", 1, 0, NOON, "", newer=1) == ""
    assert due_noncurrent_storage_class([rule], "k", 1, 0, NOON, "", newer=2) == "COLD"
    assert due_noncurrent_storage_class([rule], "k", 1, NOON, NOON, "", newer=2) == ""
