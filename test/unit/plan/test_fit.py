"""From what runs used to what requests cost (doc/explanation/planning.md)."""

import pytest

from swift.plan.costs import ASSUMED, KINDS, read_profile
from swift.plan.errors import PlanError
from swift.plan.fit import Observed, fit, fit_line, idle_duration

KB, MB = 1000, 1_000_000
NODES = {"GET copies": 1, "PUT copies": 3, "DELETE copies": 3, "GET archives": 2, "PUT archives": 3}


def run(kind, size, clients, **more):
    """What a run would have seen of servers whose costs are known."""
    nodes = NODES.get(kind, 3)
    piece = size / 2 if "archives" in kind else size
    proxy = 0.001 + 0.0005 * (nodes - 1) + 4e-9 * size
    store = nodes * (0.002 + 3e-9 * piece)
    row = 0.0 if kind.startswith("GET") else 3 * 0.0007
    client = 0.0002 + 1e-9 * size
    beside = min(2, nodes)
    mean = proxy + client + (store + row) / beside + 0.004 + 1e-8 * piece
    found = Observed(
        kind,
        size,
        clients,
        nodes,
        piece,
        100,
        proxy,
        store,
        row,
        client,
        mean,
        mean,
        2 * mean,
        kernel_s=nodes * (0.0001 + 2e-9 * piece),
    )
    return found if not more else Observed(**{**{n: getattr(found, n) for n in found.__slots__}, **more})


@pytest.fixture(scope="module")
def costs():
    runs = [run(kind, size, n) for kind in KINDS for size in (4 * KB, 4 * MB) for n in (4, 1)]
    return fit(runs, machine="here", cores=2)


def test_costs_come_out_as_they_went_in(costs):
    for kind, found in costs.kinds.items():
        assert found.store_s == pytest.approx(0.002), kind
        assert found.store_byte_s == pytest.approx(3e-9), kind
        assert found.proxy_byte_s == pytest.approx(4e-9), kind
        assert (found.client_s, found.client_byte_s) == (pytest.approx(0.0002), pytest.approx(1e-9)), kind
        assert (found.kernel_s, found.kernel_byte_s) == (pytest.approx(0.0001), pytest.approx(2e-9)), kind
        assert found.wait_s == pytest.approx(0.004), kind
        assert found.wait_byte_s == pytest.approx(1e-8), kind
    assert costs.row_s == pytest.approx(0.0007)
    assert costs.node_s == pytest.approx(0.0005)


def test_costs_follow_size_and_nodes(costs):
    assert costs.proxy_s("PUT", 0, 3, is_coded=False) == pytest.approx(0.002)
    assert costs.proxy_s("PUT", MB, 5, is_coded=False) == pytest.approx(0.003 + 0.004)
    assert costs.store_s("GET", MB, is_coded=True) == pytest.approx(0.005)
    assert costs.byte_s("GET") == pytest.approx(8e-9)
    assert costs.proxy_s("GET", 0, 0, is_coded=False) >= 0


@pytest.mark.parametrize(
    ("points", "line"),
    [
        ([(1, 5)], (5, 0)),
        ([(0, 5), (10, 25)], (5, 2)),
        ([(0, 5), (10, 1)], (5, 0)),
        ([(10, 1), (20, 31)], (0, 3)),
        ([(3, 2), (3, 4)], (2, 0)),
    ],
)
def test_nothing_costs_less_than_nothing(points, line):
    assert fit_line(points) == pytest.approx(line)


def test_where_no_archives_are_kept_they_cost_what_copies_do():
    runs = [run(kind, size, 1) for kind in KINDS if "copies" in kind for size in (4 * KB, 4 * MB)]
    found = fit(runs, machine="", cores=2)
    assert found.kinds["PUT archives"] == found.kinds["PUT copies"]
    assert found.node_s == 0


def test_a_kind_that_was_not_measured_is_named():
    with pytest.raises(PlanError, match="not measured: GET archives"):
        fit([run(kind, KB, 1) for kind in KINDS if kind != "GET archives"], machine="", cores=2)
    with pytest.raises(PlanError, match="not measured"):
        fit([run(kind, KB, 1, requests=0) for kind in KINDS], machine="", cores=2)


def test_a_profile_is_read_as_it_was_written(costs, tmp_path):
    path = tmp_path / "p.json"
    path.write_text(costs.to_json())
    assert read_profile(str(path)) == costs
    path.write_text(ASSUMED.to_json())
    assert read_profile(str(path)) == ASSUMED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: "", "Expecting value"),
        (lambda t: "[" * 100_000, "p.json"),
        (lambda t: "[]", "no profile of version 2"),
        (lambda t: t.replace('"version": 2', '"version": 1'), "no profile of version 2"),
        (lambda t: t.replace("GET copies", "GET clones"), "kinds must have"),
        (lambda t: t.replace('"wait_s": 0.0', '"wait_s": -1', 1), "GET copies: wait_s is -1"),
        (lambda t: t.replace('"wait_s": 0.0', '"wait_s": "x"', 1), "GET copies: wait_s is 'x'"),
        (lambda t: t.replace('"wait_s": 0.0', '"wait_s": NaN', 1), "GET copies: wait_s is nan"),
        (lambda t: t.replace('"wait_s"', '"waits"', 1), "'waits' is not known"),
        (lambda t: t.replace('"row_s": 0.002', '"row": 0.002', 1), "row_s is missing"),
    ],
)
def test_what_is_no_profile_is_told_with_file_and_field(tmp_path, change, message):
    path = tmp_path / "p.json"
    path.write_text(change(ASSUMED.to_json()))
    with pytest.raises(PlanError) as error:
        read_profile(str(path))
    assert message in str(error.value) and "p.json" in str(error.value)


def test_work_is_what_is_counted():
    assert idle_duration(run("GET copies", 0, 1), 2) == pytest.approx(0.001 + 0.0002 + 0.002)
    assert idle_duration(run("PUT copies", 0, 1), 2) == pytest.approx(0.002 + 0.0002 + (0.006 + 0.0021) / 2)
