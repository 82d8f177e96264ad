"""Costs of requests: profiles are read as they were written, and damaged ones refused."""

import json
from dataclasses import replace

import pytest

from swift.plan.costs import ASSUMED, KINDS, read_profile, request_kind
from swift.plan.errors import PlanError


@pytest.fixture
def profile(tmp_path):
    def write(content):
        path = tmp_path / "p.json"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return str(path)

    return write


def test_a_profile_is_read_as_it_was_written(profile):
    costs = replace(ASSUMED, node_s=0.5, row_s=0.25, machine="a ü", cores=3)
    assert read_profile(profile(costs.to_json().encode())) == costs


def test_each_verb_costs_by_nodes_and_bytes():
    kind = ASSUMED.kinds[request_kind("PUT", is_coded=False)]
    costs = replace(ASSUMED, node_s=0.1)
    assert costs.proxy_s("PUT", 0, kind.nodes, is_coded=False) == kind.proxy_s
    more = costs.proxy_s("PUT", 1e6, kind.nodes + 2, is_coded=False)
    assert more == pytest.approx(kind.proxy_s + 0.2 + 1e6 * kind.proxy_byte_s)
    assert costs.store_s("PUT", 1e6, is_coded=False) == pytest.approx(kind.store_s + 1e6 * kind.store_byte_s)


def test_fewer_nodes_than_were_measured_never_cost_less_than_nothing():
    assert replace(ASSUMED, node_s=99.0).proxy_s("PUT", 0, 0, is_coded=True) == 0.0


def damaged():
    good = json.loads(ASSUMED.to_json())
    first = KINDS[0]
    table = good["kinds"][first]
    yield {**good, "version": 1}, "no profile of version"
    yield {**good, "kinds": {}}, "kinds must have"
    yield {**good, "kinds": []}, "kinds must have"
    yield {**good, "kinds": {**good["kinds"], "POST copies": table}}, "kinds must have"
    yield {**good, "kinds": {**good["kinds"], first: 7}}, f"{first} is no table"
    yield {**good, "kinds": {**good["kinds"], first: {**table, "extra": 1}}}, "'extra' is not known"
    for wrong in ("1", None, True, -1.0, float("nan"), float("inf"), []):
        yield {**good, "kinds": {**good["kinds"], first: {**table, "proxy_s": wrong}}}, f"{first}: proxy_s"
    yield {**good, "kinds": {**good["kinds"], first: {}}}, "is missing"
    yield {key: value for key, value in good.items() if key != "cores"}, "cores is missing"
    yield {**good, "row_s": "x"}, "row_s"
    yield [], "no profile"


@pytest.mark.parametrize(("content", "text"), list(damaged()))
def test_what_is_wrong_in_a_profile_is_named(profile, content, text):
    with pytest.raises(PlanError, match=text) as caught:
        read_profile(profile(content))
    assert "p.json" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000])
def test_a_file_that_is_no_json_is_refused(profile, content):
    with pytest.raises(PlanError, match=r"p\.json"):
        read_profile(profile(content))
