"""Where something lies, as tools print it."""

import pytest

from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.operations.info import directory_of, holding_nodes, locate
from swift.policy.policy import Policy
from swift.ring.builder import RingBuilder
from swift.ring.ringfile import load_table
from swift.ring.view import RingView

HASHER = PathHasher(b"", b"s")
OBJECT = EntityPath("a", "c", "o b/ü")


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    builder = RingBuilder(4, 2, 0)
    for number in range(5):
        ip = f"fe80::{number}" if number == 4 else f"10.0.0.{number}"
        builder.add_device(region=1, zone=number, ip=ip, port=6200, device=f"sd{number}", weight=1, meta="")
    builder.rebalance(seed=1)
    path = tmp_path_factory.mktemp("ring") / "object.ring.gz"
    builder.write_ring(str(path))
    return RingView(load_table(str(path)))


def located(view, path=OBJECT, **more):
    return locate(view, HASHER.digest(*path), path, **more)


def test_as_many_handoffs_as_primaries_unless_all_are_wanted(view):
    some, everybody = located(view), located(view, all_handoffs=True)
    assert [place.is_handoff for place in some.places] == [False, False, True, True]
    assert len(everybody.places) == 5 and everybody.places[:4] == some.places


def test_commands_can_be_pasted(view):
    found = located(view, policy=Policy(2, "silver"), all_handoffs=True)
    text = "\n".join(found.lines())
    digest = HASHER.hexdigest(*OBJECT)
    curls = [line for line in found.lines() if line.startswith("curl")]
    assert len(curls) == 5 and sum(line.endswith("# [Handoff]") for line in curls) == 3
    assert all('-H "X-Backend-Storage-Policy-Index: 2"' in line for line in curls)
    assert all(f"/{found.part}/a/c/o%20b/%C3%BC" in line for line in curls)
    assert '"http://[fe80::4]:6200/sd4/' in text
    assert f"/objects-2/{found.part}/{digest[-3:]}/{digest}" in text
    assert f"Hash     \t{digest}" in text


def test_programs_get_the_same(view):
    found = located(view).as_json()
    assert found["path"] == str(OBJECT) and found["directory"] == "objects" and found["policy_index"] is None
    assert [node["handoff"] for node in found["nodes"]] == [False, False, True, True]
    assert {"ip", "port", "device"} <= found["nodes"][0].keys()


@pytest.mark.parametrize(
    "path, index, wanted",
    [
        (EntityPath("a"), 0, "accounts"),
        (EntityPath("a", "c"), 3, "containers"),
        (OBJECT, 0, "objects"),
        (OBJECT, 3, "objects-3"),
    ],
)
def test_every_kind_has_its_directory(path, index, wanted):
    assert directory_of(path, index) == wanted


def test_a_partition_beyond_the_ring_has_no_nodes(view):
    assert holding_nodes(view, 16, all_handoffs=True) == ()
    assert len(holding_nodes(view, 15, all_handoffs=True)) == 5
