"""Conditional changes of one object are linearizable, whatever nodes fail meanwhile.

Clients create, replace, post to and delete it on versions that they know of, through proxies whose clocks
differ. ``SWIFT_SEEDS=10000`` looks at as many histories, ``SWIFT_FIRST_SEED`` says from which on.
"""

import itertools
import os
import random
import time
from collections import Counter

import pytest

from swift import green
from test.support.races import Op, explains
from test.support.sim import NODES, node_port

SEEDS = int(os.environ.get("SWIFT_SEEDS", "12"))
FIRST_SEED = int(os.environ.get("SWIFT_FIRST_SEED", "0"))
WRITERS, EACH = 4, 4
#: How far the clocks of the proxies may be off, seconds; the histories of half the seeds have one clock.
SKEWS_S = (0.004, 0.05, 2.0)
#: Method → statuses with a known outcome.
OUTCOMES = {
    "PUT": {201: True, 412: False},
    "DELETE": {204: True, 412: False, 404: False},
    "POST": {202: True, 412: False, 404: False},
}


def test_the_checker_accepts_exactly_linearizable_histories():
    create = Op(None, "a", 0, 1, True)
    assert explains([create, Op(None, "b", 0, 1, False)])
    assert not explains([create, Op(None, "b", 0, 1, True)])
    assert not explains([create, Op(None, "b", 2, 3, True)])
    assert not explains([Op(None, "b", 2, 3, False)])
    assert explains([create, Op("a", "b", 2, 3, True), Op("a", "c", 2, 3, False)])
    assert not explains([create, Op("a", "b", 2, 3, True), Op("a", "c", 4, 5, True)])
    # An operation with an unknown outcome may have happened late or never.
    lost = Op("a", "b", 2, 3, None)
    assert explains([create, lost, Op("a", "c", 4, 5, True)])
    assert explains([create, lost, Op("b", "c", 4, 5, True)])
    assert explains([create, lost, Op("a", "c", 4, 5, False)])
    assert not explains([create, lost, Op("a", "c", 4, 5, False), Op("a", "d", 6, 7, True)])


class Writers:
    """Clients that change one object on condition of known versions, while nodes fail."""

    def __init__(self, sim, path, seed):
        self.sim = sim
        self.path = path
        self.chance = random.Random(seed)
        self.ticks = itertools.count()
        self.values = itertools.count()
        #: Value → ETag of the version that may have been stored.
        self.known = {None: None}
        self.skew_s = 0.0 if seed % 2 else self.chance.choice(SKEWS_S)
        self.history = []
        #: (method, status) → number of responses, for debugging.
        self.told = Counter()
        self.busy = WRITERS

    def write(self):
        try:
            for _ in range(EACH):
                self.run_once()
        finally:
            self.busy -= 1

    def run_once(self):
        expected = self.chance.choice(list(self.known)[-3:])
        # Nothing can be done to an object that is not there but to create it.
        method = "PUT" if expected is None else self.chance.choice(("PUT", "PUT", "PUT", "POST", "DELETE"))
        new = {"PUT": f"v{next(self.values)}", "POST": expected, "DELETE": None}[method]
        headers = {"if-none-match": "*"} if expected is None else {"if-match": self.known[expected]}
        if self.skew_s:
            headers["x-timestamp"] = f"{time.time() + self.chance.uniform(-self.skew_s, self.skew_s):.5f}"
        called = next(self.ticks)
        response = self.sim(method, self.path, headers, new.encode() if method == "PUT" else b"")
        ok = OUTCOMES[method].get(response.status)
        assert ok is not None or response.status == 503, response
        self.told[method, response.status] += 1
        if ok is not False and new is not None:
            self.known[new] = md5_of(new)
        self.history.append(Op(expected, new, called, next(self.ticks), ok))

    def disturb(self):
        faults, chance = self.sim.faults, self.chance
        while self.busy:
            node = node_port("object", chance.randrange(1, NODES + 1))
            if chance.random() < 0.5:
                faults.dies_after_answers[node] = chance.randrange(0, 5)
            else:
                faults.refuses.add(node)
            green.sleep(chance.choice((0.002, 0.01, 0.03)))
            faults.dies_after_answers.clear()
            faults.refuses.clear()
            self.sim.clear_node_errors()
            green.sleep(chance.choice((0.0, 0.005)))


def md5_of(text):
    from hashlib import md5

    return md5(text.encode()).hexdigest()


@pytest.mark.timeout(max(300, 2 * SEEDS))
@pytest.mark.parametrize("policy", ["gold", pytest.param("ec32", marks=pytest.mark.long)])
def test_conditional_changes_are_linearizable(make_sim, policy):
    sim = make_sim()
    assert sim("PUT", "/a/c", {"x-storage-policy": policy}).status == 201
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        sim.faults.jitter = random.Random(seed)
        writers = Writers(sim, f"/a/c/o{seed}", seed)
        green.gather([writers.write] * WRITERS + [writers.disturb])
        assert explains(writers.history), (seed, writers.history)
