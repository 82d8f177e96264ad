"""The rules of [storage-policy:N] sections (ring.md §3, proxy.md §5)."""

import sys

import pytest

from swift.policy.policy import Policies, PolicyError
from test.support.checks import every

EC = {
    "name": "ec",
    "policy_type": "erasure_coding",
    "ec_type": "liberasurecode_rs_vand",
    "ec_num_data_fragments": "4",
    "ec_num_parity_fragments": "2",
}


def parse(**sections):
    return Policies.parse({f"storage-policy:{n[1:]}": dict(values) for n, values in sections.items()})


def test_no_sections_mean_one_default_policy():
    policies = Policies.parse({"swift-hash": {}})
    assert [(p.index, p.name, p.is_default) for p in policies] == [(0, "Policy-0", True)]


def test_a_single_policy_is_the_default_without_saying_so():
    assert parse(_0={"name": "gold"}).default.name == "gold"


def test_names_and_aliases_are_found_in_any_case():
    policies = parse(
        _0={"name": "gold", "aliases": "yellow, Orange", "default": "yes"},
        _5={"name": "Silver", "deprecated": "true"},
    )
    assert policies.named("YELLOW") is policies.named("orange") is policies.get(0)
    assert policies.named("silver").is_deprecated
    assert policies.get(5).ring_name == "object-5"
    assert policies.get(0).ring_name == "object"
    assert policies.get(0).aliases == ("yellow", "Orange")
    assert policies.named("bronze") is None


@pytest.mark.parametrize(
    ("text", "index"),
    [(None, 0), ("", 0), ("0", 0), ("1", 1), ("9", None), ("x", None), ("-1", None), ("²", None)],
)
def test_header_values(text, index):
    policies = parse(_0={"name": "a", "default": "1"}, _1={"name": "b"})
    found = policies.of_header(text)
    assert (None if found is None else found.index) == index


def test_erasure_codes_know_their_geometry():
    ec = parse(_0={"name": "gold", "default": "yes"}, _2=EC).get(2)
    assert (ec.ec.data, ec.ec.parity, ec.ec.segment_size, ec.ec.duplication) == (4, 2, 1048576, 1)
    assert (ec.ec.replicas, ec.ec.quorum) == (6, 5)
    double = parse(_0={"name": "gold", "default": "yes"}, _2={**EC, "ec_duplication_factor": "2"}).get(2)
    assert (double.ec.replicas, double.ec.quorum) == (12, 10)


@pytest.mark.parametrize(
    ("data", "parity", "quorum"), [("2", "1", 3), ("4", "2", 5), ("8", "4", 9), ("10", "4", 11)]
)
def test_ec_quorums(data, parity, quorum):
    section = {**EC, "ec_num_data_fragments": data, "ec_num_parity_fragments": parity}
    assert parse(_0={"name": "gold", "default": "yes"}, _1=section).get(1).ec.quorum == quorum


GOLD = {"name": "gold", "default": "yes"}


@every(
    ("sections", "word"),
    [
        ({"_1": {"name": "a", "default": "yes"}}, "policy 0"),
        ({"_0": {"name": "a"}, "_1": {"name": "b"}}, "default"),
        ({"_0": GOLD, "_1": {"name": "b", "default": "yes"}}, "default"),
        ({"_0": {"name": "a", "deprecated": "yes"}}, "deprecated"),
        ({"_0": {**GOLD, "deprecated": "yes"}, "_1": {"name": "b"}}, "deprecated"),
        ({"_0": GOLD, "_1": {"name": "GOLD"}}, "duplicate"),
        ({"_0": GOLD, "_1": {"name": "b", "aliases": "Gold"}}, "duplicate"),
        ({"_0": GOLD, "_1": {"name": "Policy-0"}}, "Policy-0"),
        ({"_0": GOLD, "_1": {"name": "b", "aliases": "policy-0"}}, "Policy-0"),
        ({"_0": {}}, "name"),
        ({"_0": {"name": "a b"}}, "name"),
        ({"_0": {"name": "ä"}}, "name"),
        ({"_0": {"name": "a", "colour": "red"}}, "unknown option"),
        ({"_0": {"name": "a", "ec_type": "x"}}, "unknown option"),
        ({"_0": {"name": "a", "policy_type": "magic"}}, "policy_type"),
        ({"_x": {"name": "a"}}, "whole number"),
        ({"_-1": {"name": "a"}}, "whole number"),
        ({"_0": GOLD, "_1": {**EC, "ec_num_data_fragments": "0"}}, "positive"),
        ({"_0": GOLD, "_1": {**EC, "ec_num_parity_fragments": ""}}, "positive"),
        ({"_0": GOLD, "_1": {**EC, "ec_type": ""}}, "ec_type is missing"),
        ({"_0": GOLD, "_1": {**EC, "ec_type": "jerasure"}}, "there is no ec_type 'jerasure'"),
        ({"_0": GOLD, "_1": {**EC, "ec_num_data_fragments": "4000"}}, r"cannot do 4000\+2"),
        ({"_0": GOLD, "_1": {**EC, "ec_object_segment_size": "1M"}}, "ec_object_segment_size"),
        ({"_0": GOLD, "_1": {**EC, "ec_duplication_factor": "-1"}}, "ec_duplication_factor"),
        (
            {"_0": GOLD, "_1": {**EC, "ec_type": "isa_l_rs_vand", "ec_num_parity_fragments": "5"}},
            "isa_l_rs_vand",
        ),
        ({"_0": GOLD, "_00": {"name": "b"}}, "twice"),
    ],
)
def test_contradictions_end_the_start_with_a_sentence(sections, word):
    with pytest.raises(PolicyError, match=word) as caught:
        parse(**sections)
    assert str(caught.value).startswith("Invalid Storage Policy Configuration in swift.conf (")


def test_a_deprecated_policy_may_keep_a_doubtful_code():
    section = {**EC, "ec_type": "isa_l_rs_vand", "ec_num_parity_fragments": "5", "deprecated": "yes"}
    assert parse(_0=GOLD, _1=section).get(1).is_deprecated


def test_a_code_that_this_machine_cannot_compute_does_not_stop_the_other_policies():
    policies = parse(_0=GOLD, _1={**EC, "ec_type": "libphazr"})
    assert policies.get(1).ec.ec_type == "libphazr"


def test_without_the_library_policies_are_read_all_the_same(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyeclib", None)
    assert parse(_0=GOLD, _1=EC).get(1).is_ec
