"""Choices of a search are emulated by equal shares of this machine."""

import os
import threading

import pytest

pytest.importorskip("simpy")
pytest.importorskip("hdrh")

from swift.base.errors import ConfigError
from swift.load.workload import parse
from swift.plan.candidates import (
    ROUNDS,
    SECONDS_MAX,
    SHARE_OF_CORES,
    Candidate,
    CandidateBench,
    calling_periodically,
    candidate_plan,
    candidates_text,
    check_count,
    emulation_scale,
    load_text,
    measure,
    node_part,
    proxy_part,
    run_seconds,
    usable_cores,
)
from swift.plan.catalogue import WORKLOADS, read_catalogue
from swift.plan.cluster import Prediction
from swift.plan.search import TriedChoice

CHOICES = read_catalogue(None).choices()
SMALL = WORKLOADS["small-upload"]


def tried(choice, rate=100.0):
    return TriedChoice(choice, Prediction(rate, 0.1, 0.1, 0.2, {"disk": 1.0}))


def test_all_machines_of_the_largest_choice_fit_and_shares_are_equal():
    scale = emulation_scale(CHOICES, 2)
    for choice in CHOICES:
        node = node_part(choice, scale, "7:1")
        used = proxy_part(choice, scale).cores + choice.nodes * node.cores
        assert used == pytest.approx(usable_cores(choice) * scale)
        assert used <= SHARE_OF_CORES * 2 * 1.0001
        disk = choice.storage.disk
        assert node.bytes_per_s == pytest.approx(choice.storage.drives * disk.bytes_s * scale, rel=0.01)
        assert node.iops == max(1, round(choice.storage.drives * scale / disk.mean_s(0)))


def test_nothing_is_made_larger_than_it_is():
    assert emulation_scale(CHOICES[:1], 1000) == 1.0


def test_a_run_lasts_until_every_client_has_asked_some_times():
    bench = CandidateBench(None, seconds=10)
    assert run_seconds(SMALL, 1e6, bench) == 10
    assert run_seconds(SMALL, 20.0, bench) == ROUNDS * SMALL.clients / 20.0
    assert run_seconds(SMALL, 1e-9, bench) == SECONDS_MAX


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_load_is_that_of_the_search(name):
    workload, choice = WORKLOADS[name], CHOICES[0]
    made = parse(load_text(choice, workload, 40.0), "x")
    main = next(phase for phase in made.phases if phase.kind == "main")
    assert dict(main.mix) == {
        "get": round(100 * workload.get),
        "put": round(100 * workload.put),
        "delete": round(100 * (1 - workload.get - workload.put)),
    }
    assert (main.clients, main.seconds, main.rampup) == (workload.clients, 40.0, 10.0)
    assert made.objects.containers == workload.containers
    assert made.objects.count >= workload.clients
    assert made.objects.policy == "gold"


def test_the_cluster_has_the_nodes_and_the_copies_of_the_choice(tmp_path):
    plan = candidate_plan(CHOICES[0], CandidateBench(tmp_path, cores=2))
    assert (plan.nodes, plan.replicas, plan.ec) == (CHOICES[0].nodes, 3, "")
    assert 1 <= plan.proxy_workers <= 2


def test_the_best_by_cost_is_shown_with_how_far_the_prediction_is_off():
    one = Candidate(tried(CHOICES[0], 150.0), 100.0, 2)
    assert one.off == pytest.approx(0.5)
    text = candidates_text([one], 0.02)
    assert "+50 %" in text
    assert "on machines of 2 % of the real ones" in text
    assert text.splitlines()[-1].endswith(" 2"), "what failed is shown"


@pytest.mark.parametrize("count", [-1, 0, 51])
def test_a_number_of_candidates_that_makes_no_sense_is_refused(count):
    with pytest.raises(ConfigError, match="--measure"):
        check_count(count, [])


def test_bodies_are_forgotten_until_the_end_and_no_longer():
    often, enough = [], threading.Event()

    def forget():
        often.append(1)
        if len(often) == 2:
            enough.set()

    before = threading.active_count()
    with calling_periodically(forget):
        assert enough.wait(30)
    assert threading.active_count() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root could do it")
def test_who_is_not_root_is_told_so(tmp_path):
    with pytest.raises(ConfigError, match="root"):
        measure([tried(CHOICES[0])], SMALL, 1e6, CandidateBench(tmp_path), lambda _text: None)
