"""Stations and disks do what queueing theory says, and the same seed does it again."""

import random

import pytest
import simpy

from swift.plan.engine import DiskModel, LatencyTally, ModelDisk, Station, closed_loop, open_loop

MODEL = DiskModel(seek_s=0.008, rotation_s=0.004, bytes_s=100e6)


def run_queue(rate, service_s, servers=1, seed=1, seconds=3000.0):
    env, rng, tally = simpy.Environment(), random.Random(seed), LatencyTally([])
    station = Station(env, "one", servers)

    def request():
        yield station.serve(rng.expovariate(1 / service_s))

    open_loop(env, rate, request, tally, seconds / 10, rng)
    env.run(until=seconds)
    return tally, station


@pytest.mark.parametrize("load", [0.3, 0.5, 0.7])
def test_one_server_has_the_mean_time_of_the_simplest_queue(load):
    tally, station = run_queue(load * 20, 0.05)
    assert tally.mean_s == pytest.approx(0.05 / (1 - load), rel=0.1)
    assert station.utilisation() == pytest.approx(load, rel=0.05)


def test_two_servers_wait_less_than_one():
    assert run_queue(14, 0.1, servers=2)[0].mean_s < 0.5 * run_queue(14, 0.1)[0].mean_s


def test_the_same_seed_gives_the_same_run():
    assert run_queue(5, 0.1, seed=4, seconds=50)[0] == run_queue(5, 0.1, seed=4, seconds=50)[0]
    assert run_queue(5, 0.1, seed=4, seconds=50)[0] != run_queue(5, 0.1, seed=5, seconds=50)[0]


def test_clients_in_a_closed_loop_share_a_station():
    env, tally = simpy.Environment(), LatencyTally([])
    station = Station(env, "one")

    def request():
        yield station.serve(0.01)

    closed_loop(env, 10, request, tally, 1.0)
    env.run(until=11.0)
    assert tally.mean_s == pytest.approx(0.1)
    assert len(tally.latencies) == pytest.approx(1000, rel=0.02)
    assert tally.percentile_s(0.99) == pytest.approx(0.1)


def test_a_disk_seeks_but_for_what_goes_on_where_the_last_access_ended():
    env = simpy.Environment()
    disk = ModelDisk(env, "d", MODEL, random.Random(1))

    def reads():
        for number in range(4000):
            yield disk.access(1e5, stream=number)

    env.process(reads())
    env.run()
    assert env.now / 4000 == pytest.approx(MODEL.mean_s(1e5), rel=0.03)
    before = env.now

    def on():
        for _ in range(100):
            yield disk.access(1e5, stream=3999)

    env.process(on())
    env.run()
    assert env.now - before == pytest.approx(0.1)


def test_nothing_measured_is_nothing():
    assert LatencyTally([]).mean_s == LatencyTally([]).percentile_s(0.5) == 0
