"""What is to be done about a partition, from suffix hashes alone."""

import random

from swift.obj.reconstructor.rebuild import LoneFragmentRule
from swift.obj.reconstructor.settings import ObjectReconstructorSettings
from swift.obj.reconstructor.task import ArchiveRevert, plan_reverts, sync_partners
from swift.policy.policy import ErasureCode
from test.support.daemons import make_node

EC42 = ErasureCode("liberasurecode_rs_vand", 4, 2)
SIX = [make_node(number) for number in range(6)]


def jobs(hashes, own=None, primaries=SIX, ec=EC42):
    return plan_reverts(hashes, own, primaries, ec, random.Random(1))


def test_a_primary_rebuilds_for_its_left_its_right_and_its_far_neighbour():
    assert [n.index for n in sync_partners(SIX[1], SIX)] == [0, 2, 4]
    assert [n.index for n in sync_partners(SIX[5], SIX)] == [4, 0, 2]


def test_in_a_small_ring_nobody_is_asked_twice_or_asks_itself():
    assert [n.index for n in sync_partners(SIX[0], SIX[:3])] == [2, 1]
    assert [n.index for n in sync_partners(SIX[0], SIX[:2])] == [1]
    assert sync_partners(SIX[0], SIX[:1]) == []


def test_archives_of_other_indexes_go_to_the_primary_of_their_index():
    hashes = {"abc": {None: "d", 1: "x", 4: "y"}, "def": {4: "y"}}
    assert jobs(hashes, SIX[1]) == [ArchiveRevert(4, ("abc", "def"), (SIX[4],))]


def test_a_handoff_keeps_nothing():
    hashes = {"abc": {None: "d", 1: "x"}, "def": {2: "y"}}
    assert [(job.index, job.nodes) for job in jobs(hashes)] == [(1, (SIX[1],)), (2, (SIX[2],))]


def test_tombstones_go_along_with_the_first_archives():
    assert jobs({"abc": {1: "x"}, "def": {None: "t"}}) == [ArchiveRevert(1, ("abc", "def"), (SIX[1],))]


def test_tombstones_alone_go_to_so_many_that_a_reader_meets_one():
    (job,) = jobs({"abc": {None: "t"}})
    assert (job.index, job.suffixes, len(job.nodes)) == (None, ("abc",), 3)


def test_a_primary_keeps_its_tombstones():
    assert jobs({"abc": {None: "t"}}, SIX[1]) == []


def test_with_duplication_every_primary_of_the_index_gets_it():
    twice = ErasureCode("liberasurecode_rs_vand", 2, 1, duplication=2)
    (job,) = jobs({"abc": {1: "x"}}, SIX[3], SIX, twice)
    assert [n.index for n in job.nodes] == [1, 4]
    assert jobs({"abc": {0: "x"}}, SIX[3], SIX, twice) == []


def test_an_index_that_no_primary_has_stays():
    assert jobs({"abc": {5: "x"}}, SIX[0], SIX[:3]) == []


def test_an_archive_is_given_up_only_when_nothing_is_in_doubt():
    rule = LoneFragmentRule(1, 100.0, 12)
    assert rule.is_old_enough(0.0, 101.0)
    assert not rule.is_old_enough(0.0, 99.0)
    assert not LoneFragmentRule(0, 100.0, 12).is_old_enough(0.0, 101.0)
    assert rule.should_quarantine(archives=1, needed=4, unknown=0)
    assert not rule.should_quarantine(archives=1, needed=4, unknown=1)
    assert not rule.should_quarantine(archives=2, needed=4, unknown=0)
    assert not rule.should_quarantine(archives=1, needed=1, unknown=0)


def test_options_are_read_as_the_peer_s():
    settings = ObjectReconstructorSettings.parse({"request_node_count": "3 * replicas", "reclaim_age": "9"})
    assert (settings.nodes_asked(6), settings.quarantine_age_s) == (18, 9.0)
    settings = ObjectReconstructorSettings.parse({"request_node_count": "7", "quarantine_age": "5"})
    assert (settings.nodes_asked(6), settings.quarantine_age_s) == (7, 5.0)
    assert ObjectReconstructorSettings.parse({"handoffs_first": "yes"}).handoffs_only
