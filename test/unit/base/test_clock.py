"""Time as a seam."""

import time

from swift.base.clock import CachedSecondText, ManualClock, SystemClock


def test_the_clock_of_the_machine_agrees_with_it():
    before = time.time()
    assert before <= SystemClock().time() <= time.time()
    assert SystemClock().monotonic() <= time.monotonic()


def test_a_manual_clock_moves_only_when_told_to():
    clock = ManualClock(100.0)
    assert (clock.time(), clock.monotonic()) == (100.0, 100.0)
    clock.advance(2.5)
    assert (clock.time(), clock.monotonic()) == (102.5, 102.5)


def test_the_text_of_a_second_is_made_once():
    shown = []

    def show(moment):
        shown.append(moment)
        return time.strftime("%H:%M:%S", moment)

    text = CachedSecondText(show)
    assert [text(3600.0), text(3600.9), text(3601.0)] == ["01:00:00", "01:00:00", "01:00:01"]
    assert len(shown) == 2


def test_a_clock_that_was_set_back_is_followed():
    text = CachedSecondText(lambda moment: time.strftime("%S", moment))
    assert [text(59.0), text(3.0)] == ["59", "03"]
