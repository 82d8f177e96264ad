"""Suffix hashes in the tier: believed only in the epoch in which they were computed, and never in the way."""

from __future__ import annotations

import pytest

from swift.store.tier.store import PartitionHashes
from test.support.tiers import LostSessions, make_tier

PARTITION = b"sda/objects/7"
HASHES = {"abc": "0" * 32, "def": "1" * 32}


@pytest.fixture
def make(tmp_path):
    made = []

    def make(mode="write-through", **dependencies):
        made.append(make_tier(tmp_path, mode, **dependencies))
        (tmp_path / "sda").mkdir(exist_ok=True)
        return made[-1], PartitionHashes(made[-1])

    make.device = str(tmp_path / "sda")
    yield make
    for tier in made:
        tier.close()


def keep(hashes, device, values=None):
    hashes.find(device, PARTITION)
    start = hashes.start(PARTITION)
    hashes.keep(PARTITION, start, HASHES if values is None else values)


def test_what_was_computed_is_known_until_something_changes(make):
    tier, hashes = make()
    assert hashes.find(make.device, PARTITION) is None
    keep(hashes, make.device)
    assert hashes.find(make.device, PARTITION).hashes == HASHES
    tier.entries().forget(PARTITION + b"/abc/" + b"d" * 29 + b"abc")
    assert hashes.find(make.device, PARTITION) is None


def test_what_changed_while_it_was_computed_is_not_kept(make):
    tier, hashes = make()
    start = hashes.start(PARTITION)
    tier.entries().forget(PARTITION)
    hashes.keep(PARTITION, start, HASHES)
    assert hashes.find(make.device, PARTITION) is None
    assert tier.figures["hashes", "sda", "rejected"] == 1


def test_hashes_of_another_epoch_are_not_believed(make):
    tier, hashes = make()
    keep(hashes, make.device)
    tier.entries().shared_state.renew("sda")
    assert hashes.find(make.device, PARTITION) is None
    assert tier.figures["hashes", "sda", "misses"] == 2


def test_while_a_suffix_could_not_be_hashed_nothing_is_kept(make):
    _tier, hashes = make()
    keep(hashes, make.device, {**HASHES, "fff": None})
    assert hashes.find(make.device, PARTITION) is None


def test_a_partition_without_suffixes_is_known_as_such(make):
    _tier, hashes = make()
    keep(hashes, make.device, {})
    assert hashes.find(make.device, PARTITION).hashes == {}


@pytest.mark.parametrize(
    ("mode", "keeps", "serves"),
    [
        ("write-through", True, True),
        ("write-back", True, True),
        ("write-invalidate", True, True),
        ("write-only", True, True),
        ("pass-through", False, False),
    ],
)
def test_the_mode_says_what_is_kept_and_what_is_answered(make, mode, keeps, serves):
    _tier, hashes = make(mode)
    hashes.find(make.device, PARTITION)
    start = hashes.start(PARTITION)
    assert (start is not None) == keeps
    if start is not None:
        hashes.keep(PARTITION, start, HASHES)
    found = hashes.find(make.device, PARTITION)
    assert (found is not None) == serves
    assert hashes.defers == (mode == "write-back")


def test_while_the_tier_is_not_used_nothing_is_deferred(make):
    tier, hashes = make("write-back")
    keep(hashes, make.device)
    tier.failed("pulled")
    assert not hashes.defers
    assert hashes.find(make.device, PARTITION) is None
    assert hashes.start(PARTITION) is None


def test_what_the_processes_share_may_be_lost_at_any_moment(make, tmp_path):
    sessions = LostSessions()
    tier, hashes = make(**sessions.dependencies)
    start = hashes.start(PARTITION)
    sessions.lose(tier)
    hashes.keep(PARTITION, start, HASHES)
    assert hashes.find(make.device, PARTITION) is None
    assert hashes.start(PARTITION) is None
