"""Multipart uploads have one outcome, and their objects stay complete (decision 0020).

Clients upload and copy parts, complete, abort and repeat that, overwrite and delete the object and its
bucket, rules abort uploads, and the daemon finishes what broke off; requests are refused, answers lost, and
processes die between any two steps. ``SWIFT_SEEDS=10000`` looks at as many histories, ``SWIFT_FIRST_SEED``
says from which on.
"""

import os

import pytest

from test.support.races import Race

SEEDS = int(os.environ.get("SWIFT_SEEDS", "200"))
FIRST_SEED = int(os.environ.get("SWIFT_FIRST_SEED", "0"))
SEEDS_AT_ONCE = 200


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + SEEDS, SEEDS_AT_ONCE))
def test_uploads_have_one_outcome_and_objects_stay_complete(first):
    for seed in range(first, min(first + SEEDS_AT_ONCE, FIRST_SEED + SEEDS)):
        race = Race(seed)
        race.run()
        assert not list(race.faults_found()), (seed, race.history, list(race.faults_found()))
