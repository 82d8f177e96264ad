"""One misplaced object is damage, many are wrong settings."""

from swift.base.misplaced import FITTING_NEEDED_PER_MOVE, MOVES_WITHOUT_EVIDENCE, MisplacedGuard


def moved(guard, device, count):
    return sum(guard.may_move(device) for _ in range(count))


def test_nothing_is_moved_before_something_is_in_its_place():
    guard = MisplacedGuard()
    assert moved(guard, "sda", 5) == 0
    guard.note_fitting("sda")
    assert moved(guard, "sda", 5) == 5


def test_of_many_misplaced_ones_few_are_moved():
    guard = MisplacedGuard()
    for _ in range(1000):
        guard.note_fitting("sda")
    assert moved(guard, "sda", 10_000) == MOVES_WITHOUT_EVIDENCE + 1000 // FITTING_NEEDED_PER_MOVE


def test_each_device_counts_for_itself():
    guard = MisplacedGuard()
    guard.note_fitting("sda")
    assert guard.may_move("sda") and not guard.may_move("sdb")
