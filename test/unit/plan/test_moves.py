"""What a change of devices moves is counted on the ring itself; nothing is written."""

import pytest

from swift.plan import moves
from swift.plan.durability import parse_policy
from swift.plan.errors import PlanError
from swift.ring.builder import RingBuilder
from swift.ring.errors import RingError

TERMS = moves.MoveAssumptions(
    bytes_stored=3 * 2**8 * 1e9, device_bytes_s=1e7, failures_a_year=0.02, shape=parse_policy("3")
)


def builder_of(zones=4, devices=2, *, balanced=True):
    builder = RingBuilder(8, 3, 1)
    for zone in range(1, zones + 1):
        for device in range(devices):
            builder.add_device(
                region=1, zone=zone, ip=f"10.0.0.{zone}", port=6200, device=f"d{device}", weight=100.0
            )
    if balanced:
        builder.rebalance(seed=1)
    return builder


def test_a_lost_zone_moves_its_copies_and_each_partition_misses_one_at_most():
    found = moves.simulate_moves(builder_of(), moves.lose_zone("2"), TERMS)
    assert found.missing == {1: 192}
    assert found.moved >= 192
    assert found.moved_bytes == pytest.approx(found.moved * 1e9)
    assert found.copy_s == pytest.approx(found.busiest_bytes / 1e7)
    assert 0 < found.risk < 1e-3
    assert found.already_lost == 0


def test_an_added_zone_takes_its_share_and_nothing_is_at_risk():
    found = moves.simulate_moves(builder_of(), moves.add_zone_like("1"), TERMS)
    assert found.share == pytest.approx(1 / 5, abs=0.02)
    assert found.busiest_device.startswith("2001:db8::5:1:6200/")
    assert found.missing == {}
    assert found.risk == 0


def test_a_device_that_goes_and_one_that_comes():
    gone = moves.simulate_moves(builder_of(), moves.lose_device(0), TERMS)
    assert gone.share == pytest.approx(1 / 8, abs=0.02)
    fields = {"zone": 1, "ip": "10.0.0.9", "port": 6200, "device": "d"}
    come = moves.simulate_moves(builder_of(), moves.add_device(fields, 100.0), TERMS)
    assert come.share == pytest.approx(1 / 9, abs=0.02)
    assert come.busiest_device == "10.0.0.9:6200/d"


def test_a_weight_that_stays_moves_nothing():
    found = moves.simulate_moves(builder_of(), moves.set_weight(0, 100.0), TERMS)
    assert found.moved == 0
    assert found.copy_s == 0
    assert found.busiest_device == "-"


def test_a_zone_that_has_more_copies_than_the_policy_bears_is_a_loss():
    terms = moves.MoveAssumptions(1e12, 1e7, 0.02, parse_policy("1"))
    found = moves.simulate_moves(builder_of(), moves.lose_zone("r1z1"), terms)
    assert found.already_lost == 192
    assert found.risk == 1


def test_a_quicker_drive_is_less_at_risk():
    slow = moves.loss_risk({1: 100}, TERMS, 100)
    assert moves.loss_risk({1: 100}, TERMS, 10) < slow < moves.loss_risk({2: 100}, TERMS, 100)


def test_builders_and_rings_are_read_and_left_alone(tmp_path):
    builder, ring = tmp_path / "object.builder", tmp_path / "object.ring.gz"
    made = builder_of()
    made.save(str(builder))
    made.write_ring(str(ring))
    before = builder.read_bytes(), ring.read_bytes()
    found = [
        moves.simulate_moves(moves.load_builder(str(path)), moves.lose_zone("1"), TERMS)
        for path in (builder, ring)
    ]
    assert found[0].moved == found[1].moved
    assert (builder.read_bytes(), ring.read_bytes()) == before


@pytest.mark.parametrize("zone", ["x", "r1", "7", "r2z1", ""])
def test_a_zone_that_is_not_there_is_one_sentence(zone):
    with pytest.raises(PlanError, match="zone"):
        moves.simulate_moves(builder_of(), moves.lose_zone(zone), TERMS)


def test_a_builder_without_assignment_and_a_device_that_is_not_there():
    with pytest.raises(PlanError, match="never been rebalanced"):
        moves.simulate_moves(builder_of(balanced=False), moves.lose_zone("1"), TERMS)
    with pytest.raises(RingError, match="no device with id 99"):
        moves.simulate_moves(builder_of(), moves.lose_device(99), TERMS)


def test_what_is_no_builder_is_refused(tmp_path):
    for name in ("a.builder", "a.ring.gz"):
        (tmp_path / name).write_bytes(b"nothing of the kind")
        with pytest.raises(RingError):
            moves.load_builder(str(tmp_path / name))
