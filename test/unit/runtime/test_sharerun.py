"""One pass over one share: what fails, hangs or is stopped, and what is reported of it."""

from __future__ import annotations

import pytest

from swift import green
from swift.base.clock import SystemClock
from swift.base.errors import SwiftError
from swift.runtime.cursor import Cursor
from swift.runtime.report import Counters, Progress
from swift.runtime.sharerun import ShareResult, ShareRun, log_failure
from swift.runtime.stop import StopRequest
from swift.runtime.throttle import Throttle
from swift.telemetry.telemetry import Telemetry

CLOCK = SystemClock()


class Lines:
    """A log that tells errors with a traceback from those without."""

    def __init__(self):
        self.told = []

    def info(self, line):
        return

    def error(self, line):
        self.told.append(line)

    def exception(self, line, error):
        self.told.append(f"{line}: traceback")


class Turn:
    """A pass over units; ``act`` does one."""

    def __init__(self, units, act=lambda unit: None, end=lambda: None):
        self._units = units
        self.act = act
        self.end = end
        self.done = []

    def plan(self):
        yield from self._units

    def do(self, unit):
        self.act(unit)
        self.done.append(unit)

    def facts(self):
        return {"done": len(self.done)}


class Share:
    """A run over a turn, with what it tells."""

    def __init__(self, turn, root="", concurrency=1):
        self.wait_for_turn = turn
        self.log = Lines()
        telemetry = Telemetry(self.log)
        self.counters = Counters(telemetry, "daemon")
        self.stop = StopRequest(CLOCK)
        self.cursor = Cursor(str(root), CLOCK, self.log)
        self.progress = Progress(telemetry, CLOCK, title="sda", interval_s=60.0)
        self.told = []
        self.run = ShareRun(
            "sda",
            turn,
            counters=self.counters,
            progress=self.progress,
            cursor=self.cursor,
            stop=self.stop,
            units=Throttle(0, CLOCK, self.stop.wait),
            concurrency=concurrency,
            log=self.log,
        )

    def watch(self, stall_s=0.0, tell_every_s=60.0, **grace):
        return self.run.watch(CLOCK, stall_s, self.told.append, tell_every_s, **grace)


def fails_at(number, error):
    def act(unit):
        if unit == number:
            raise error

    return act


def test_a_share_is_done_and_told_of():
    share = Share(Turn(range(3)))
    result = share.watch()
    assert (result.units, result.facts, result.counts) == (3, {"done": 3}, {})
    assert share.run.has_ended and share.told == []


@pytest.mark.parametrize("concurrency", [0, 1, 3, 50])
def test_every_unit_is_done_once_however_many_at_a_time(concurrency):
    share = Share(Turn(range(20), lambda unit: green.sleep()), concurrency=concurrency)
    assert share.watch().units == 20
    assert sorted(share.wait_for_turn.done) == list(range(20))


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(5, "bad disk"), "ERROR 1 failed: [Errno 5] bad disk"),
        (SwiftError("foreseen"), "ERROR 1 failed: foreseen"),
        (ValueError("not foreseen"), "ERROR 1 failed: traceback"),
    ],
)
def test_a_unit_that_fails_is_counted_and_told_once(concurrency, error, line):
    share = Share(Turn(range(3), fails_at(1, error)), concurrency=concurrency)
    result = share.watch()
    assert (result.units, result.counts) == (3, {"errors": 1})
    assert share.log.told == [line]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_plan_that_breaks_off_ends_the_share_after_what_was_begun(concurrency):
    def units():
        yield 1
        yield 2
        raise OSError(5, "bad disk")

    ends = []
    share = Share(
        Turn(units(), lambda unit: green.sleep(), end=lambda: ends.append(1)), concurrency=concurrency
    )
    result = share.watch()
    assert (result.units, result.counts, ends) == (2, {"errors": 1}, [1])
    assert share.log.told == ["ERROR cannot go on with sda: [Errno 5] bad disk"]


def test_an_end_that_fails_is_told():
    share = Share(Turn(range(1), end=lambda: 1 / 0))
    assert share.watch().counts == {"errors": 1}
    assert share.log.told == ["ERROR cannot end sda: traceback"]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_request_to_stop_ends_it_at_the_next_unit(concurrency):
    share = Share(Turn(range(100)), concurrency=concurrency)
    share.wait_for_turn.act = lambda unit: share.stop.request() if unit == 4 else None
    result = share.watch()
    assert 5 <= result.units <= 5 + concurrency


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("place", ["unit", "plan"])
def test_a_request_to_stop_does_not_wait_for_what_hangs(concurrency, place):
    hang = green.Event()

    def stop_and_hang():
        share.stop.request()
        hang.wait(60)

    def units():
        yield 0
        if place == "plan":
            stop_and_hang()
        yield 1

    share = Share(
        Turn(units(), lambda unit: stop_and_hang() if place == "unit" else None), concurrency=concurrency
    )
    assert share.watch(grace_s=0.05) is None
    assert not share.run.has_ended
    hang.set()
    while not share.run.has_ended:
        green.sleep()
    assert 1 not in share.wait_for_turn.done or concurrency > 1


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_what_is_not_of_a_unit_but_of_the_process_ends_whoever_waits(error, concurrency):
    share = Share(Turn(range(9), fails_at(1, error)), concurrency=concurrency)
    with pytest.raises(type(error)):
        share.watch()
    assert share.run.has_ended
    assert 8 not in share.wait_for_turn.done


def test_a_share_in_which_nothing_moves_is_given_up_and_ends_at_its_next_unit():
    hang = green.Event()
    share = Share(Turn(range(3), lambda unit: hang.wait(10) if unit == 1 else None))
    assert share.watch(stall_s=0.1) is None
    assert not share.run.has_ended
    assert share.counters.counts == {"stalls": 1}
    assert "has not moved for 0.1s" in share.log.told[0]
    hang.set()
    while not share.run.has_ended:
        green.sleep()
    assert share.wait_for_turn.done == [0, 1]


def test_a_long_unit_in_which_bytes_move_is_no_stall_and_is_told_of():
    share = Share(Turn(range(1)))

    def act(unit):
        for _ in range(6):
            green.sleep(0.1)
            share.progress.bytes += 1

    share.wait_for_turn.act = act
    assert share.watch(stall_s=0.4, tell_every_s=0.0).bytes == 6
    assert share.told and share.told[0].units == 0


def test_a_result_goes_through_a_pipe_and_back():
    result = ShareResult({"a": 1}, {"errors": 2}, 3, 4.5, 6, 7.0)
    assert ShareResult(**result.as_json()) == result


def test_only_what_nobody_foresaw_has_a_traceback():
    log = Lines()
    for error in (SwiftError("a"), OSError(5, "b"), TimeoutError(), KeyError("c")):
        log_failure(log, "it", error)
    assert [line.endswith("traceback") for line in log.told] == [False, False, False, True]
