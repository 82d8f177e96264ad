"""Progress of a ring by the reports of servers, some of which send none."""

from collections import Counter

import pytest

from swift.layout.observation import progress_of, unseen_servers
from swift.operations.health.copies import RingCopies
from swift.operations.recon.client import Host
from swift.ring.view import RingView
from test.support.layouts import make_builder

HOSTS = [Host(f"10.0.0.{number}", 6200) for number in (1, 2, 3, 4)]


@pytest.fixture(scope="module")
def view():
    devices = [(1, number, host.ip, "sdb", 100.0) for number, host in enumerate(HOSTS, 1)]
    return RingView(make_builder(devices, part_power=6).table())


def test_two_servers_that_report_are_enough_for_a_partition_of_a_silent_one(view):
    assert unseen_servers(view, (), is_ordered=False) == frozenset()
    assert unseen_servers(view, HOSTS[:1], is_ordered=False) == frozenset()
    assert unseen_servers(view, HOSTS[:2], is_ordered=False) == frozenset(HOSTS[:2])


def test_all_servers_have_to_report_archives(view):
    assert unseen_servers(view, HOSTS[:1], is_ordered=True) == frozenset(HOSTS[:1])


@pytest.mark.parametrize(
    ("silent", "unseen", "failed", "in_order"),
    [
        (set(), (), 0, True),
        (set(), (), 1, True),
        ({HOSTS[0]}, None, 0, False),
        ({HOSTS[0]}, (HOSTS[0],), 0, False),
        ({HOSTS[0]}, (), 0, True),
        ({HOSTS[0]}, (), 1, False),
    ],
)
def test_copies_on_a_silent_server_have_arrived_when_no_pass_fails(silent, unseen, failed, in_order):
    copies = RingCopies("object", unknown=silent, failed=failed)
    progress = progress_of("digest", copies, (), unseen=unseen)
    assert (progress.is_in_order, progress.is_in_order_elsewhere) == (in_order, in_order)


def test_copies_that_devices_lack_that_are_away_are_not_waited_for():
    copies = RingCopies("object", missing=2, missing_on=Counter({"10.0.0.1/sdb": 2}))
    progress = progress_of("digest", copies, {"10.0.0.1/sdb"})
    assert progress.is_in_order_elsewhere and not progress.is_in_order
