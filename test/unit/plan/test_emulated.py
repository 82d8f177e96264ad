"""A cluster on one machine is predicted from what its requests cost (doc/explanation/planning.md)."""

import pytest

from swift.plan.costs import KINDS, Costs, RequestCosts
from swift.plan.emulated import Emulated, Expected, predict_emulated


def emulated(**more):
    given = {"mix": {"GET": 1.0}, "size": 4000.0, "clients": 1, **more}
    return Emulated("x", given.pop("nodes", 3), given.pop("copies", 3), given.pop("data", 0), 1, **given)


def test_one_client_waits_for_all_the_work_and_for_the_disk():
    work = RequestCosts(0.004, 1e-9, 1, 0.002, 1e-9, 0.001, 0, wait_s=0.005)
    found = predict_emulated(emulated(), Costs(dict.fromkeys(KINDS, work), 0.0, 0.0, "here", 2), seconds=10)
    assert found.p50_s["GET"] == pytest.approx(0.012, rel=0.01)
    assert found.rate == pytest.approx(1 / 0.012, rel=0.01)


def test_many_clients_get_what_the_cores_do():
    work = RequestCosts(0.004, 0, 1, 0.004, 0, 0.002, 0)
    costs = Costs(dict.fromkeys(KINDS, work), 0.0, 0.0, "here", 2)
    found = predict_emulated(emulated(clients=16, workers=2, loaders=2), costs, seconds=10)
    assert found.rate == pytest.approx(2 / 0.010, rel=0.05)


def test_what_the_kernel_does_takes_from_the_cores_and_delays_no_answer():
    work = RequestCosts(0.004, 0, 1, 0.004, 0, 0.002, 0, kernel_s=0.010)
    costs = Costs(dict.fromkeys(KINDS, work), 0.0, 0.0, "here", 2)
    assert predict_emulated(
        emulated(clients=16, workers=2, loaders=2), costs, seconds=10
    ).rate == pytest.approx(100, rel=0.05)
    alone = predict_emulated(emulated(), costs, seconds=10)
    assert alone.p50_s["GET"] < 0.020


def test_medians_are_told_by_verb():
    kinds = {kind: RequestCosts(0.001 if "GET" in kind else 0.1, 0, 1, 0.001, 0) for kind in KINDS}
    mixed = predict_emulated(
        emulated(mix={"GET": 0.5, "PUT": 0.5}), Costs(kinds, 0.0, 0.0, "here", 4), seconds=20
    )
    assert mixed.p50_s["GET"] < 0.01 < 0.1 < mixed.p50_s["PUT"]


def test_a_short_request_is_not_kept_by_a_long_one_for_all_its_time():
    kinds = {kind: RequestCosts(0.001 if "GET" in kind else 0.1, 0, 1, 0, 0) for kind in KINDS}
    costs = Costs(kinds, 0.0, 0.0, "here", 1)
    mixed = predict_emulated(emulated(mix={"GET": 0.5, "PUT": 0.5}, clients=4), costs, seconds=20)
    assert mixed.p50_s["GET"] < 0.01
    assert mixed.rate == pytest.approx(2 / 0.101, rel=0.1)


def test_a_single_process_uses_one_core():
    work = RequestCosts(0.008, 0, 1, 0.001, 0, 0.001, 0)
    costs = Costs(dict.fromkeys(KINDS, work), 0.0, 0.0, "here", 8)
    rates = [predict_emulated(emulated(clients=16, workers=n), costs, seconds=10).rate for n in (1, 2)]
    assert rates == pytest.approx([125, 250], rel=0.05)


def test_a_slow_disk_is_what_uploads_wait_for():
    costs = Costs(dict.fromkeys(KINDS, RequestCosts(1e-3, 0, 1, 1e-3, 0)), 0.0, 0.0, "here", 2)
    two = {"mix": {"PUT": 1.0}, "size": 1e6, "nodes": 2, "copies": 2, "clients": 4}
    quick, slow = (predict_emulated(emulated(**two, slow=s), costs, seconds=8) for s in ({}, {0: 20e6}))
    assert slow.rate == pytest.approx(20, rel=0.05)
    assert quick.rate > 20 * slow.rate


def test_archives_are_smaller_and_are_asked_of_more():
    coded = emulated(nodes=4, data=2, copies=3)
    assert (coded.piece, coded.nodes_requested("GET"), coded.nodes_requested("PUT"), coded.needed("PUT")) == (
        2000.0,
        2,
        3,
        3,
    )
    assert (emulated().nodes_requested("PUT"), emulated().needed("PUT"), emulated().piece) == (3, 2, 4000.0)


def test_figures_have_names_and_units():
    found = Expected(50.0, {"PUT": 0.2, "GET": 0.01}, 0.3)
    assert found.figures() == {"requests/s": 50.0, "GET p50 ms": 10.0, "PUT p50 ms": 200.0, "p99 ms": 300.0}
