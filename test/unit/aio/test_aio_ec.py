"""The erasure coded policy of an all-in-one cluster."""

import pytest

from swift.aio.make import check_ec, make_cluster
from swift.aio.plan import default_ec, new_plan, parse_ec
from swift.base.errors import ConfigError
from swift.config.cluster import read_cluster_config
from swift.policy.policy import Policies
from swift.ring.ring import Ring


@pytest.mark.parametrize(
    ("nodes", "code"), [(1, ""), (3, ""), (4, "2+1"), (6, "2+1"), (7, "4+2"), (12, "4+2")]
)
def test_the_code_leaves_a_node_to_stand_in(nodes, code):
    assert default_ec(nodes) == code
    assert not code or sum(parse_ec(code)) < nodes


@pytest.mark.parametrize("text", ["", "4", "+", "4+", "a+b", "-1+2", "4+2+1"])
def test_what_is_no_code_is_refused(text):
    with pytest.raises(ConfigError, match=r"an erasure code is K\+M"):
        parse_ec(text)


@pytest.mark.parametrize(("code", "words"), [("4+2", "at least 6 devices"), ("0+1", "cannot do 0")])
def test_a_code_that_cannot_work_is_refused(tmp_path, code, words):
    with pytest.raises(ConfigError, match=words):
        check_ec(new_plan(tmp_path, nodes=4, ec=code))


def test_without_the_library_a_code_is_refused_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyeclib", None)
    with pytest.raises(ConfigError, match="needs PyECLib"):
        check_ec(new_plan(tmp_path, nodes=4, ec="2+1"))


def test_the_policy_and_its_ring_are_made(tmp_path):
    plan = new_plan(tmp_path / "data", nodes=4, ec="2+1", part_power=4)
    make_cluster(plan)
    path = str(plan.etc / "swift.conf")
    policies = Policies.parse(read_cluster_config(path).sections, source=path)
    assert (policies.default.name, policies.named("ec").ec.replicas) == ("gold", 3)
    assert Ring(str(plan.etc / "object-1.ring.gz")).view().replica_count == 3


def test_without_a_code_there_is_one_policy(tmp_path):
    plan = new_plan(tmp_path / "data", nodes=4, part_power=4)
    make_cluster(plan)
    assert not (plan.etc / "object-1.ring.gz").exists()
    assert "storage-policy:1" not in (plan.etc / "swift.conf").read_text()


def test_devices_of_one_node_can_hold_a_code(tmp_path):
    plan = new_plan(tmp_path, nodes=1, disks=6, ec="4+2")
    check_ec(plan)
    make_cluster(plan)
    view = Ring(str(plan.etc / "object-1.ring.gz")).view()
    assert sorted(node.device for node in view.primaries(0)) == [f"sd{letter}1" for letter in "bcdefg"]


def test_more_copies_than_devices_are_refused(tmp_path):
    new_plan(tmp_path, nodes=1, disks=3).check()
    with pytest.raises(ConfigError, match="3 replicas need at least as many devices, not 2"):
        new_plan(tmp_path, nodes=1, disks=2).check()
