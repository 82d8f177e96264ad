"""Catalogues: what can be chosen from, and where a file says what cannot be."""

import tomllib
from dataclasses import replace

import pytest

from swift.plan.catalogue import RENTED_2012, WORKLOADS, parse_catalogue, read_catalogue
from swift.plan.engine import DiskModel
from swift.plan.errors import PlanError


def content():
    return tomllib.loads(RENTED_2012)


def changed(path, value):
    found = content()
    *above, last = path
    table = found
    for name in above:
        table = table[name]
    table[last] = value
    return found


def test_without_a_file_there_are_the_machines_of_2012():
    found = read_catalogue(None)
    assert [machine.name for machine in found.proxies] == ["c1.xlarge", "cc1.4xlarge"]
    assert len(found.choices()) == 2 * 3 * 3 * 3 * 2
    disk = found.storages[0].disk
    assert disk.bytes_s == 100e6 and found.storages[0].network_bytes_s == 62.5e6


def test_a_choice_costs_its_machines_and_ssds_only_where_databases_are_on_them():
    found = replace(read_catalogue(None), databases=("disk", "ssd"), ssd_price=10.0)
    proxy, storage = found.proxies[0], found.storages[0]
    plain, dear = (
        found.choice(proxy, 2, storage, 5, (8, found.policies[0], place)) for place in found.databases
    )
    assert plain.cost == pytest.approx(2 * 0.66 + 5 * 0.32) and dear.cost == pytest.approx(plain.cost + 50)
    assert "2 x c1.xlarge + 5 x m1.large, 8 workers" in plain.name and dear.name.endswith("databases on ssd")


def test_a_machine_is_beaten_by_one_that_is_nowhere_worse_and_not_the_same():
    one = read_catalogue(None).storages[0]
    assert replace(one, price=1.0).is_dominated_by(one) and not one.is_dominated_by(one)
    assert not replace(one, cores=99, price=1.0).is_dominated_by(one)
    assert replace(one, disk=DiskModel(1.0, 1.0, 1e6)).is_dominated_by(one)


def test_shares_of_each_known_workload_leave_some_for_deletions():
    for workload in WORKLOADS.values():
        assert 0 < workload.get + workload.put < 1
        assert workload.size_min < workload.mean_size < workload.size_max


STORAGE = ("storages", "m1.large")


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (("disks",), {}, r"there are no tables \[disks.NAME\]"),
        (("disks",), {"local": 7}, r"there are no tables \[disks.NAME\]"),
        (("disks", "local", "mb_s"), 0, "mb_s is 0"),
        (("disks", "local", "seek_ms"), -1, "seek_ms"),
        (("disks", "local"), {}, "seek_ms is missing"),
        (("proxies", "c1.xlarge", "cores"), "8", "cores is '8'"),
        (("proxies", "c1.xlarge", "cores"), float("inf"), "cores is inf"),
        (("proxies", "c1.xlarge", "price"), float("nan"), "price is nan"),
        (("proxies", "c1.xlarge", "speed"), True, "speed is True"),
        ((*STORAGE, "disk"), "ssd", "disk is 'ssd'; known are local"),
        ((*STORAGE, "disk"), ["local"], r"disk is \['local'\]; known are local"),
        ((*STORAGE, "disk"), {"local": 1}, "known are local"),
        ((*STORAGE, "memory_gib"), 0, "memory_gib is 0"),
        (("choose",), 7, r"the table \[choose\] is missing"),
        (("choose", "proxies"), [], "not a list with something in it"),
        (("choose", "proxies"), [1.5], "whole numbers"),
        (("choose", "storage_nodes"), [10**9], "whole numbers of at most"),
        (("choose", "workers"), ["2"], "workers is '2'"),
        (("choose", "workers"), [0], "workers is 0"),
        (("choose", "databases"), ["tape"], "'tape' is neither disk nor ssd"),
        (("choose", "policies"), ["4+"], "4"),
        (("choose", "policies"), [{}], "."),
        (("choose", "objects"), 0, "objects is 0"),
    ],
)
def test_what_cannot_be_is_named_with_its_place(path, value, text):
    with pytest.raises(PlanError, match=text):
        parse_catalogue(changed(path, value), "mine.toml")


@pytest.mark.parametrize("text", [b"", b"[disks", b"\xff", b"x = 1"])
def test_a_file_that_is_no_catalogue_is_refused(tmp_path, text):
    (tmp_path / "c.toml").write_bytes(text)
    with pytest.raises(PlanError, match=r"c\.toml"):
        read_catalogue(str(tmp_path / "c.toml"))
