"""The screen of swift-health."""

from swift.operations.health.copies import RingCopies
from swift.operations.health.evaluate import Health, RingHealth
from swift.operations.health.screen import screen

NOW_S = 1795228430.0
FACTS = {
    "async_pending": 3,
    "async_pending_last": NOW_S - 7,
    "native_disk": {"10.0.0.1:6200": True, "10.0.0.2:6200": False},
    "quarantined": {"objects": 1, "containers": 0, "accounts": 0},
}
RING = RingHealth("object", "object", 3.0, 16, 1, {0: 16}, [], [])


def lines(*, rings=(RING,), done_s=None, copies=()):
    return list(screen(Health([], rings, 4, [], done_s, FACTS, copies), NOW_S))


def test_the_table_has_what_is_to_be_moved_and_copied():
    shown = lines(copies=[RingCopies("object", misplaced=224, missing=7, failed=2)])
    assert shown[0] == "OK        2026-11-21 00:40:30 UTC   4 devices, 0 away" or shown[0].startswith("OK  ")
    assert shown[2].split() == [
        *("ring", "partitions", "degraded", "away", "at", "last", "copy", "out", "of", "reach"),
        *("to", "move", "to", "copy", "failed"),
    ]
    assert shown[3].split() == ["object", "16", "0", "0", "0", "0", "224", "7", "2"]
    assert "waiting updates 3 (counted 7 s ago), quarantined: 1 objects" in shown[5]
    assert shown[6] == "native disk calls: 1 of 2 object servers; without: 10.0.0.2:6200"


def test_what_nobody_reports_is_marked():
    assert lines()[3].split()[-3:] == ["?", "?", "?"]
    shown = lines(copies=[RingCopies("object", misplaced=1, waiting=["10.0.0.1/sda"])])
    assert shown[3].split()[-3:] == ["1?", "0?", "0?"]
    shown = lines(copies=[RingCopies("object", is_splitting=True)])
    assert shown[3].split()[-3:] == ["0?", "0?", "0?"]


def test_the_time_that_is_left_follows_the_passes():
    open_copies = [RingCopies("object", misplaced=1, as_of_s=NOW_S - 120)]
    shown = lines(done_s=NOW_S + 600, copies=open_copies)
    assert "copies are as the rings say in about 10 minutes, if replicators go on as fast" in shown
    assert shown[-1] == "the oldest of the replication passes behind this ended 2 minutes ago"
    shown = lines(copies=open_copies)
    assert "the time that is left is unknown until the replicators complete another pass" in shown
