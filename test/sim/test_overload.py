"""A cluster under 150% of its capacity: with admission control, reservations hold.

See doc/explanation/admission.md.

Devices share their rate among all streams, none of which is faster than a connection. Clients give up after a
while; what was sent to them until then is lost. Time is simulated, the gate is the real one.
"""

import random

import pytest

from swift.middleware.admission.amounts import Amounts
from swift.middleware.admission.limiter import AdmittedRequest, Limiter, ReservedClass
from swift.middleware.admission.rules import AdmissionRules, RequestProperties

MB = 1e6
#: The capacity of the devices, and the capacity configured for admission.
DEVICES, TOLD = 100 * MB, 92 * MB
CONNECTION = 5 * MB
SIZE = 2 * MB
PATIENCE_S = 4.0
STEP_S = 0.01
RESERVED = 30 * MB


class Stream:
    def __init__(self, who, began, admitted):
        self.who = who
        self.began = began
        self.admitted = admitted
        self.left = SIZE
        self.may_at = 0.0


class World:
    """Clients that send requests at fixed rates by name, and devices."""

    def __init__(self, offered, *, admits, seed=1):
        self.offered = offered
        self.count_bytes = random.Random(seed)
        self.streams = []
        self.done = dict.fromkeys(offered, 0.0)
        self.times = {who: [] for who in offered}
        self.refused = dict.fromkeys(offered, 0)
        self.limiter = Limiter(
            AdmissionRules(), Amounts(bytes=TOLD if admits else None), burst_s=0.5, now=0.0
        )
        self.limiter.set_reservations({"ticket:r": RESERVED}, 0.0)

    def come(self, who, now):
        reserved_class = ReservedClass("ticket:r", RESERVED) if who == "reserved" else None
        admitted = self.limiter.admit(RequestProperties(who), now, reserved=reserved_class)
        if isinstance(admitted, AdmittedRequest):
            admitted.set_expected_size(SIZE, now)
            self.streams.append(Stream(who, now, admitted))
        else:
            self.refused[who] += 1

    def step(self, now, counts):
        for who, rate in self.offered.items():
            expected = rate / SIZE * STEP_S
            for _ in range(int(expected) + (self.count_bytes.random() < expected % 1)):
                self.come(who, now)
        moving = [stream for stream in self.streams if stream.may_at <= now]
        each = min(CONNECTION, DEVICES / max(1, len(moving))) * STEP_S
        for stream in moving:
            moved = min(each, stream.left)
            stream.left -= moved
            stream.may_at = now + stream.admitted.count_bytes(moved, now)
            if stream.left <= 0 and counts:
                self.done[stream.who] += SIZE
                self.times[stream.who].append(now - stream.began)
        over = [s for s in self.streams if s.left <= 0 or now - s.began > PATIENCE_S]
        for stream in over:
            stream.admitted.end(now)
            self.streams.remove(stream)

    def run(self, seconds, warm_s=10.0):
        now = 0.0
        while now < warm_s + seconds:
            self.step(now, now >= warm_s)
            now += STEP_S
        return {who: done / seconds for who, done in self.done.items()}


def p99(times):
    return sorted(times)[int(0.99 * (len(times) - 1))]


def offered(total):
    others = total - RESERVED
    return {"reserved": RESERVED, "AUTH_a": 0.6 * others, "AUTH_b": 0.4 * others}


@pytest.fixture(scope="module")
def idle():
    world = World({"reserved": RESERVED}, admits=True)
    world.run(30.0)
    return p99(world.times["reserved"])


@pytest.mark.parametrize("seed", [1, 2])
def test_a_reservation_holds_and_goodput_does_not_fall(idle, seed):
    peak = sum(World(offered(0.9 * DEVICES), admits=False, seed=seed).run(40.0).values())
    world = World(offered(1.5 * DEVICES), admits=True, seed=seed)
    done = world.run(40.0)
    assert done["reserved"] >= 0.95 * RESERVED
    assert p99(world.times["reserved"]) <= 2 * idle
    assert sum(done.values()) >= 0.9 * peak
    assert world.refused["reserved"] == 0
    assert world.refused["AUTH_a"] and world.refused["AUTH_b"]


def test_without_admission_goodput_falls():
    peak = sum(World(offered(0.9 * DEVICES), admits=False).run(40.0).values())
    done = World(offered(1.5 * DEVICES), admits=False).run(40.0)
    assert sum(done.values()) < 0.7 * peak
    assert done["reserved"] < 0.7 * RESERVED


def test_a_client_with_ten_times_the_load_takes_nothing_from_another():
    load = {"AUTH_small": 30 * MB, "AUTH_big": 300 * MB}
    done = World(load, admits=True).run(40.0)
    assert done["AUTH_small"] >= 0.9 * 30 * MB
