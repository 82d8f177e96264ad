"""The striping study of 1991 comes out within a tenth, in a short simulated time."""

import pytest

from tools.studies import study1991
from tools.studies.study1991 import DISK, KIB, Striped, mean_transfer_s, prototype, sustained


def test_a_transfer_of_32_kb_takes_37_ms():
    assert mean_transfer_s(32 * KIB, 5000, 1) == pytest.approx(0.037, rel=0.1)
    assert DISK.mean_s(32 * KIB) == pytest.approx(0.0374, abs=0.0001)


def test_22_requests_a_second_keep_32_disks_half_busy_and_are_sustained():
    load = Striped(32, 32 * KIB, 20, "1").run(22, 40)
    idle = Striped(32, 32 * KIB, 20, "1").run(1, 100)
    assert load.utilisation == pytest.approx(0.5, rel=0.1)
    assert load.mean_s < 2 * idle.mean_s


@pytest.mark.parametrize("unit, published", [(4, 2.0), (32, 12.0)])
def test_the_largest_sustained_rate_of_a_client(unit, published):
    load = sustained(32, unit * KIB, seconds=30, seed=1991, rounds=6)
    assert load.rate * 32 * unit * KIB / 1e6 == pytest.approx(published, rel=0.1)


def test_it_is_almost_linear_in_disks():
    rates = [disks * sustained(disks, 32 * KIB, seconds=60, seed=1, rounds=7).rate for disks in (4, 16)]
    assert rates[1] / rates[0] == pytest.approx(4, rel=0.1)


def test_the_prototypes_gains():
    missed = [figure.name for figure in prototype() if not figure.is_near]
    assert missed == []


def test_one_agent_is_no_faster_than_its_disk():
    assert study1991.prototype_bytes_s(1, 1) == study1991.LOCAL_READ_BYTES_S


def test_the_same_seed_gives_the_same_figures():
    assert Striped(4, 4 * KIB, 4, "7").run(5, 10) == Striped(4, 4 * KIB, 4, "7").run(5, 10)
