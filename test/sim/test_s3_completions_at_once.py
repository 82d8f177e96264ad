"""Requests that complete one upload at once get one answer, as on a cluster with delays.

``SWIFT_SEEDS=1000`` looks at as many histories, ``SWIFT_FIRST_SEED`` says from which on.
"""

import os
import random

import pytest

from swift import green
from test.support.s3_fixtures import Multipart

SEEDS = int(os.environ.get("SWIFT_SEEDS", "10"))
FIRST_SEED = int(os.environ.get("SWIFT_FIRST_SEED", "0"))
CLIENTS = 5


@pytest.mark.long
@pytest.mark.timeout(max(300, 3 * SEEDS))
def test_completions_at_once_repeat_the_answer_of_the_one_that_wins(s3):
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        upload = Multipart(s3, f"/bucket/key{seed}")
        parts = [(number, b"%d" % number) for number in (1, 2, 3)]
        for part in parts:
            assert upload.part(*part).status == 200
        s3.sim.faults.jitter = random.Random(seed)
        responses = green.gather([lambda: upload.complete(*parts)] * CLIENTS)  # noqa: B023
        s3.sim.faults.jitter = None
        assert [response.status for response in responses] == [200] * CLIENTS, (seed, responses)
        assert len({response.body for response in responses}) == 1, (
            seed,
            [response.body for response in responses],
        )
        assert s3("GET", f"/bucket/key{seed}").body == b"123"
