"""Overlaps and gaps of shards: what is said of them and which ranges mend them."""

from dataclasses import replace

import pytest

from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.container.sharding.overlaps import gaps, lines_of, overlaps

BEGIN = Timestamp("1795000000.00000")
NOW = Timestamp("1795009000.00000")


def shard(name, lower, upper, **more):
    facts = {"state": State.ACTIVE, "object_count": 10, **more}
    return ShardRange(f".shards_a/{name}", BEGIN, lower, upper, **facts)


WHOLE = [shard("1", "", "m"), shard("2", "m", "")]
BESIDE = shard("3", "k", "n", object_count=3)


def names(verdict):
    return [item.name[-1] for item in verdict.changes]


def test_shards_without_overlaps_need_no_repair(capsys):
    verdict = overlaps(WHOLE, NOW, min_age_s=0, verbose=0)
    assert (verdict.is_fit, verdict.changes) == (True, [])
    assert capsys.readouterr().out.endswith("No repairs necessary.\n")


def test_what_lies_beside_the_fullest_sequence_shrinks_from_now_on(capsys):
    verdict = overlaps([*WHOLE, BESIDE], NOW, min_age_s=0, verbose=1)
    (change,) = verdict.changes
    assert verdict.is_fit and names(verdict) == ["3"]
    assert (change.state, change.epoch, change.state_timestamp) == (
        State.SHRINKING,
        NOW.internal,
        NOW.internal,
    )
    said = capsys.readouterr().out
    assert "3 object records being moved" in said and "Donors:" in said and "Acceptors:" in said


def test_donors_younger_than_the_age_limit_stay(capsys):
    verdict = overlaps([*WHOLE, BESIDE], NOW, min_age_s=1e6, verbose=0)
    assert verdict.is_fit and verdict.changes == []
    assert "1 overlapping donor shards ignored due to minimum age limit" in capsys.readouterr().out


@pytest.mark.parametrize("state", [State.SHARDING, State.SHRINKING])
def test_nothing_is_repaired_while_shards_are_moving(capsys, state):
    verdict = overlaps([*WHOLE, replace(BESIDE, state=state)], NOW, min_age_s=0, verbose=0)
    assert not verdict.is_fit and verdict.changes == []
    assert f"in {state.name.lower()} state" in capsys.readouterr().out


@pytest.mark.parametrize("ranges", [[], [BESIDE], WHOLE[:1]])
def test_overlaps_of_an_incomplete_sequence_are_not_repaired(capsys, ranges):
    verdict = overlaps(ranges, NOW, min_age_s=0, verbose=0)
    assert not verdict.is_fit and verdict.changes == []
    assert "Found no complete sequence" in capsys.readouterr().out


HOLED = [shard("1", "", "f"), shard("2", "h", "p"), shard("3", "t", "")]


def test_a_whole_sequence_has_no_gaps(capsys):
    assert gaps(WHOLE, NOW, max_expanding=-1).changes == []
    assert "2 shard ranges with no gaps" in capsys.readouterr().out


def test_every_gap_is_covered_by_the_expansions(capsys):
    verdict = gaps(HOLED, NOW, max_expanding=-1)
    assert verdict.is_fit
    known = {item.name: item for item in HOLED} | {item.name: item for item in verdict.changes}
    assert gaps(list(known.values()), NOW, max_expanding=-1).changes == []
    assert "Found 2 gaps:" in capsys.readouterr().out


def test_not_more_shards_are_expanded_than_allowed(capsys):
    assert len(gaps(HOLED, NOW, max_expanding=1).changes) == 1
    assert gaps(HOLED, NOW, max_expanding=0).changes == []


def test_a_gap_between_shards_that_do_not_take_writes_stays(capsys):
    verdict = gaps([replace(item, state=State.CREATED) for item in HOLED], NOW, max_expanding=-1)
    assert verdict.needs_consent and verdict.changes == []
    assert "cannot fix gap: non-ACTIVE neighbors" in capsys.readouterr().out


def test_each_shard_is_shown_with_its_bounds_and_counts():
    text = lines_of([shard("ü\n", "a'", "m", tombstones=7)], ">")
    assert text.count("\n") == 2 and all(line.startswith(">") for line in text.splitlines())
    assert "tombstones:         7" in text and '''lower: "a'"''' in text and "'.shards_a/ü\\n'" in text
