"""The rings of a cluster by what they place."""

import pytest

from swift.cluster.rings import Rings
from swift.policy.policy import Policies
from swift.ring.errors import RingError
from test.support.peer import make_rings

SECTIONS = {
    "storage-policy:0": {"name": "gold", "default": "yes"},
    "storage-policy:1": {
        "name": "coded",
        "policy_type": "erasure_coding",
        "ec_type": "liberasurecode_rs_vand",
        "ec_num_data_fragments": "2",
        "ec_num_parity_fragments": "1",
    },
}


@pytest.fixture
def rings(tmp_path):
    make_rings(tmp_path, [(f"127.0.0.{n}", 6200, "sda") for n in (1, 2, 3)])
    return Rings(str(tmp_path), Policies.parse(SECTIONS))


def test_each_policy_has_a_ring_of_its_own(rings):
    policies = list(Policies.parse(SECTIONS))
    assert rings.object(policies[0]) is rings.object(policies[0])
    assert rings.object(policies[0]) is not rings.object(policies[1])
    assert rings.object(policies[1]).view().replica_count == 3
    assert rings.account.view().replica_count == rings.container.view().replica_count == 3


def test_a_coded_policy_needs_a_device_for_every_archive(rings, tmp_path):
    make_rings(
        tmp_path, [("127.0.0.1", 6200, name) for name in ("sda", "sdb")], replicas=2, names=["object-1"]
    )
    coded = list(Policies.parse(SECTIONS))[1]
    with pytest.raises(RingError, match="has 2 replicas, policy coded needs exactly 3"):
        rings.object(coded).view()


def test_a_ring_file_is_damaged_when_it_is_there_and_cannot_be_read(rings, tmp_path):
    assert rings.damaged() == []
    (tmp_path / "container.ring.gz").unlink()
    (tmp_path / "object.ring.gz").write_bytes(b"not a ring")
    fresh = Rings(str(tmp_path), Policies.parse(SECTIONS))
    (problem,) = fresh.damaged()
    assert "object.ring.gz cannot be used" in problem


def test_a_server_without_which_nothing_can_be_served_is_known(tmp_path):
    rings = Rings(str(tmp_path), Policies.parse(SECTIONS))
    assert not rings.is_only_server("127.0.0.1", 6200)
    one = [("127.0.0.1", 6200, name) for name in ("sda", "sdb", "sdc")]
    make_rings(tmp_path, one, names=["object"])
    make_rings(tmp_path, [*one, ("127.0.0.2", 6200, "sda")], names=["account", "container", "object-1"])
    assert rings.is_only_server("127.0.0.1", 6200)
    assert not rings.is_only_server("127.0.0.2", 6200) and not rings.is_only_server("127.0.0.1", 6201)
