"""Joules are counted over all packages and past the counters' ends; where there are none, that is said."""

import pytest

from swift.load.servers import Energy


def package(root, name, used, most=1_000_000):
    folder = root / name
    folder.mkdir(exist_ok=True)
    (folder / "energy_uj").write_text(f"{used}\n")
    (folder / "max_energy_range_uj").write_text(f"{most}\n")
    return folder


def test_packages_are_added_and_their_parts_are_not(tmp_path):
    for name, used in (("intel-rapl:0", 5), ("intel-rapl:1", 7), ("intel-rapl:0:0", 99), ("intel-rapl", 9)):
        package(tmp_path, name, used)
    energy = Energy(tmp_path)
    before = energy.measure()
    assert before == {"intel-rapl:0": 5, "intel-rapl:1": 7}
    package(tmp_path, "intel-rapl:0", 2_000_005)
    package(tmp_path, "intel-rapl:1", 500_007)
    assert energy.usage_since(before, energy.measure()) == 2.5
    assert energy.obstacle == ""


def test_a_counter_that_begins_again_counts_on(tmp_path):
    package(tmp_path, "intel-rapl:0", 900_000, most=999_999)
    energy = Energy(tmp_path)
    before = energy.measure()
    package(tmp_path, "intel-rapl:0", 100_000, most=999_999)
    assert energy.usage_since(before, energy.measure()) == 0.2


def test_a_machine_without_counters_says_so(tmp_path):
    energy = Energy(tmp_path / "none")
    assert (energy.measure(), energy.usage_since(None, None)) == (None, None)
    assert energy.obstacle == "this machine shows no energy counters (RAPL)"


@pytest.mark.parametrize("break_it", [lambda path: path.unlink(), lambda path: path.write_text("much\n")])
def test_counters_that_cannot_be_read_are_no_joules(tmp_path, break_it):
    folder = package(tmp_path, "intel-rapl:0", 5)
    energy = Energy(tmp_path)
    before = energy.measure()
    break_it(folder / "energy_uj")
    assert energy.measure() is None
    assert energy.usage_since(before, energy.measure()) is None
    assert energy.obstacle == "the energy counters (RAPL) can be read by root only"
