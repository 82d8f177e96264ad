"""Capacity is learnt from what is delivered (doc/explanation/admission.md)."""

import pytest

from swift.middleware.admission.capacityestimate import LearnedRate


class Devices:
    """They do so much a second; beyond it a queue grows, and answers take longer."""

    def __init__(self, rate, usual_s=0.01):
        self.rate = rate
        self.usual_s = usual_s
        self.queued = 0.0

    def second(self, offered):
        self.queued += offered
        done = min(self.queued, self.rate)
        self.queued -= done
        return done, self.usual_s + self.queued / self.rate


@pytest.mark.parametrize("rate", [50.0, 1e6, 5e9])
def test_it_is_found_when_more_is_offered_and_most_of_it_is_used(rate):
    devices, learnt, done, bounds = Devices(rate), LearnedRate(), [], []
    for _ in range(600):
        offered = (
            1.5 * rate if learnt.capacity_per_second is None else min(1.5 * rate, learnt.capacity_per_second)
        )
        delivered, response_s = devices.second(offered)
        learnt.update(delivered, response_s, 100)
        done.append(delivered)
        bounds.append(learnt.capacity_per_second)
    assert sum(bounds[300:]) / 300 == pytest.approx(rate, rel=0.15)
    assert max(bounds[300:]) < 1.3 * rate
    assert sum(done[100:]) >= 0.9 * rate * 500


def test_while_nothing_is_slow_nothing_is_bounded():
    learnt = LearnedRate()
    for n in range(100):
        assert learnt.update(1000.0 * n, 0.01, 100) is None


def test_it_follows_devices_that_become_faster_and_slower():
    devices, learnt = Devices(1000.0), LearnedRate()
    for rate in (1000.0, 3000.0, 500.0):
        devices.rate = rate
        for _ in range(400):
            offered = (
                4500.0 if learnt.capacity_per_second is None else min(4500.0, learnt.capacity_per_second)
            )
            delivered, response_s = devices.second(offered)
            learnt.update(delivered, response_s, 100)
        assert learnt.capacity_per_second == pytest.approx(rate, rel=0.25)


def test_few_answers_say_nothing():
    learnt = LearnedRate()
    learnt.update(1000.0, 0.01, 100)
    assert learnt.update(10.0, 5.0, 2) is None
    assert learnt.update(0.0, 5.0, 200) is None
