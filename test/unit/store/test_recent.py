"""Which chunks were found right a short while ago."""

from swift.base.clock import ManualClock
from swift.store.verified import BELIEVED_S, FILES_MAX, RecentChecks

FILE = (1, 2, 3)


def test_a_check_is_believed_for_a_while():
    clock = ManualClock(0.0)
    checks = RecentChecks(clock)
    checks.add(FILE, 7)
    clock.advance(BELIEVED_S - 1)
    assert checks.knows(FILE, 7)
    clock.advance(1)
    assert not checks.knows(FILE, 7)


def test_another_chunk_or_a_file_that_changed_is_not_known():
    checks = RecentChecks(ManualClock())
    checks.add(FILE, 7)
    assert not checks.knows(FILE, 8)
    assert not checks.knows((1, 2, 4), 7)


def test_memory_is_bounded():
    checks = RecentChecks(ManualClock())
    for inode in range(FILES_MAX + 10):
        checks.add((1, inode, 1), 0)
    assert repr(checks) == f"<RecentChecks of {FILES_MAX} files>"
    assert not checks.knows((1, 0, 1), 0) and checks.knows((1, FILES_MAX + 9, 1), 0)
