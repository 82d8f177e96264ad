"""Gaps, overlaps and shards that could be merged are found; recon lists the largest candidates."""

from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.container.sharding.overview import Overview, audit_root, compactible, recon_lists
from swift.container.sharding.scan import shard_name

STAMP = Timestamp("1795000000.00000")
OWN = ShardRange("AUTH_test/c", STAMP.normal, state=State.SHARDED)


def shard(lower, upper, *, parent="c", state=State.ACTIVE, objects=10, index=0):
    name = shard_name("AUTH_test", "c", parent, STAMP, index)
    return ShardRange(f"{name}", STAMP.normal, lower, upper, objects, state=state)


def test_gaps_and_overlaps_have_words():
    audit = audit_root([shard("", "b"), shard("c", "e"), shard("d", "f")], OWN, is_complete=True)
    assert audit.words() == ["missing range(s): b-c, f-MaxBound", "overlapping range(s): d-f"]
    assert audit_root([shard("", "b")], OWN, is_complete=False).words() == []
    assert audit_root([shard("", "b"), shard("b", "")], OWN, is_complete=True).words() == []


def test_children_and_shrinking_shards_do_not_overlap():
    parent = shard("", "m", state=State.SHARDING)
    child = shard("", "f", parent=parent.name.partition("/")[2], state=State.CLEAVED)
    donor = shard("m", "p", state=State.SHRINKING)
    assert audit_root([parent, child, donor, shard("m", "")], OWN, is_complete=True).words() == []


def test_a_root_that_takes_its_shards_in_has_no_gaps():
    donors = [shard("b", "d", state=State.SHRINKING), shard("f", "", state=State.SHRINKING)]
    active = ShardRange("AUTH_test/c", STAMP.normal, state=State.ACTIVE)
    assert audit_root(donors, active, is_complete=True).words() == []
    assert audit_root(donors, OWN, is_complete=True).words() != []


def test_shards_that_could_be_merged_are_counted():
    sizes = {"shrink_below": 5, "expand_to": 20, "max_shrinking": 1, "max_expanding": -1}
    assert compactible([shard("", "b", objects=2), shard("b", "")], OWN, **sizes) == 1
    assert compactible([shard("", "b"), shard("b", "")], OWN, **sizes) == 0


def test_the_largest_candidates_are_listed():
    overview = Overview()
    for number in range(4):
        facts = {"object_count": number, "path": f"/{number}"}
        overview.note(f"/{number}", {"sharding_candidates": facts})
    overview.note("/0", {})
    told = recon_lists([overview], 2)
    assert told["sharding_candidates"]["found"] == 3
    assert [item["path"] for item in told["sharding_candidates"]["top"]] == ["/3", "/2"]
    assert len(recon_lists([overview], -1)["sharding_candidates"]["top"]) == 3
    overview.forget(["/3"])
    assert recon_lists([overview], 2)["sharding_candidates"]["found"] == 2


def test_warnings_are_given_now_and_then():
    overview = Overview()
    assert [overview.may_warn("/a", "slow", now, 10) for now in (0, 5, 10, 15)] == [True, False, True, False]
    assert overview.may_warn("/b", "slow", 5, 10)
