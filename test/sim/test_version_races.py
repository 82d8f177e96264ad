"""Versions that are deleted at once leave no key behind, and the newest remaining version is current.

Clients delete versions one by one and many at a time, list and empty the bucket, upload and delete objects;
requests are refused, answers lost, and processes die between any two steps. Clients repeat what they got no
answer to. ``SWIFT_SEEDS=10000`` looks at as many histories, ``SWIFT_FIRST_SEED`` says from which on.
"""

import os

import pytest

from test.support.races import VersionRace

SEEDS = int(os.environ.get("SWIFT_SEEDS", "80"))
FIRST_SEED = int(os.environ.get("SWIFT_FIRST_SEED", "0"))
SEEDS_AT_ONCE = 200


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + SEEDS, SEEDS_AT_ONCE))
def test_a_versioned_bucket_can_be_emptied_and_shows_what_is_left(first):
    for seed in range(first, min(first + SEEDS_AT_ONCE, FIRST_SEED + SEEDS)):
        race = VersionRace(seed)
        faults = list(race.run())
        assert not faults, (seed, race.history, faults)
