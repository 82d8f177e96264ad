"""An archive is given up only when nobody can have more of its object (replication.md §5.3)."""

import pytest

from swift.obj.reconstructor.rebuild import LoneFragmentRule

NOW_S, DAY_S = 1_795_000_000.0, 86400.0


@pytest.mark.parametrize(
    ("threshold", "age_s", "may"),
    [(0, 10 * DAY_S, False), (1, 10 * DAY_S, True), (1, 7 * DAY_S, False), (1, 7 * DAY_S + 1, True)],
)
def test_old_archives_alone_are_looked_at_and_none_without_a_threshold(threshold, age_s, may):
    rule = LoneFragmentRule(threshold, 7 * DAY_S, nodes=6)
    assert rule.is_old_enough(NOW_S - age_s, NOW_S) is may


@pytest.mark.parametrize(
    ("archives", "unknown", "condemned"),
    [(1, 0, True), (2, 0, True), (3, 0, False), (1, 1, False), (2, 6, False)],
)
def test_too_few_are_given_up_when_every_node_has_answered(archives, unknown, condemned):
    rule = LoneFragmentRule(2, 0.0, nodes=6)
    assert rule.should_quarantine(archives=archives, needed=4, unknown=unknown) is condemned


def test_what_can_be_read_is_never_given_up():
    rule = LoneFragmentRule(5, 0.0, nodes=6)
    assert not rule.should_quarantine(archives=4, needed=4, unknown=0)
    assert rule.should_quarantine(archives=3, needed=4, unknown=0)
