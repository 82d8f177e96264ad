"""A pass goes on where it was when the process ended; what it did before still counts."""

import os

import pytest

from swift.base.clock import ManualClock
from swift.container.sharding.settings import ContainerSharderSettings
from swift.runtime.cursor import SAVED_EVERY_S, Cursor, cursor_path
from swift.runtime.daemon import Runner, Schedule
from swift.runtime.selection import Selection
from swift.runtime.stop import StopRequest
from swift.telemetry.log import silent_log
from test.support.daemons import CountingTask, DaemonFixture
from test.support.disks import ODD, bounded, replace


class Counting(CountingTask):
    """Ten units in order, of which the process is told to end in the fourth."""

    def __init__(self, rig, end_at=None):
        self.done = []

        def units(turn):
            yield from range(turn.pass_context.cursor.position or 0, 10)

        def act(turn, unit):
            self.done.append(unit)
            turn.pass_context.cursor.note(unit + 1)
            turn.pass_context.count_bytes_read(100)
            rig.clock.advance(1)
            if unit == end_at:
                rig.stop.request()

        super().__init__(units, act=act)


def test_a_pass_that_was_cut_short_goes_on_after_a_restart(tmp_path):
    rig = DaemonFixture(tmp_path)
    first = Counting(rig, end_at=3)
    began_s = rig.clock.time()
    assert not rig.runner(first).run_once()
    assert first.done == [0, 1, 2, 3]
    rig.stop = StopRequest(rig.clock, rig.clock.sleep)
    rig.clock.advance(100)
    second = Counting(rig)
    assert rig.runner(second).run_once()
    assert second.done == [4, 5, 6, 7, 8, 9]
    (result,) = second.reports[0].results.values()
    assert (result.units, result.bytes, result.counts) == (10, 1000, {"successes": 10})
    assert result.begun_s == began_s
    assert result.seconds == 10


def test_a_pass_that_is_through_begins_at_the_beginning_again(tmp_path):
    rig = DaemonFixture(tmp_path)
    task = Counting(rig)
    runner = rig.runner(task)
    assert runner.run_once()
    assert runner.run_once()
    assert task.done == [*range(10), *range(10)]
    assert list((tmp_path / "recon").glob("*.cursors/*")) == []


def test_what_was_noted_is_written_now_and_then(tmp_path):
    clock = ManualClock(1000.0)
    path = cursor_path(str(tmp_path), "auditor", "a/b")
    cursor = Cursor(path, clock, silent_log())
    assert cursor.position is None
    cursor.note(["7", "abc"])
    assert not cursor.save_if_due()
    clock.advance(SAVED_EVERY_S)
    assert cursor.save_if_due()
    cursor.save()
    clock.advance(5)
    later = Cursor(path, clock, silent_log())
    assert (later.position, later.begun_s) == (["7", "abc"], 1000.0)
    later.clear()
    assert Cursor(path, clock, silent_log()).position is None


def test_what_is_no_cursor_counts_as_none(tmp_path):
    path = tmp_path / "c"
    for text in (
        "",
        "nonsense",
        "[]",
        "{}",
        '{"begun_s": "x"}',
        '{"begun_s": 1, "counts": 3}',
        '{"other": 1}',
    ):
        path.write_text(text)
        assert Cursor(str(path), ManualClock(5.0), silent_log()).begun_s == 5.0


def test_a_limited_run_leaves_cursors_and_recon_alone(tmp_path):
    rig = DaemonFixture(tmp_path)
    assert not rig.runner(Counting(rig, end_at=3)).run_once()
    before = sorted(path.read_text() for path in (tmp_path / "recon").glob("*.cursors/*"))
    rig.stop = StopRequest(rig.clock, rig.clock.sleep)
    by_hand = Counting(rig)
    assert rig.runner(by_hand, is_limited=True).run_once()
    assert by_hand.done == list(range(10))
    assert sorted(path.read_text() for path in (tmp_path / "recon").glob("*.cursors/*")) == before
    assert rig.recon("object").read() == {}


def test_a_limited_run_reports_to_recon_where_the_daemon_asks_for_it(tmp_path):
    rig = DaemonFixture(tmp_path)
    assert rig.runner(Counting(rig), Schedule(30.0, reports_selections=True), is_limited=True).run_once()
    assert rig.recon("object").read()
    assert ContainerSharderSettings().schedule.reports_selections


def test_a_selection_names_devices_partitions_and_policies():
    everything = Selection.parse()
    assert not everything
    assert everything.filter_devices(["a", "b"]) == ["a", "b"]
    some = Selection.parse("a, c", "7", "1")
    assert some
    assert some.filter_devices(["a", "b"]) == ["a"]
    assert (some.includes_partition("7"), some.includes_partition("8")) == (True, False)


def test_a_schedule_may_bound_bytes(tmp_path):
    rig = DaemonFixture(tmp_path)
    moments = []

    def act(turn, _unit):
        moments.append(rig.clock.now_s)
        turn.pass_context.count_bytes_read(500)

    task = CountingTask(units=6, act=act)
    assert isinstance(rig.runner(task), Runner)
    assert rig.runner(task, Schedule(30, bytes_per_second=100)).run_once()
    assert moments[-1] - moments[0] >= 20


@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_file_is_no_cursor_and_is_not_waited_for(tmp_path, kind):
    path = cursor_path(str(tmp_path), "auditor", "sda")
    os.makedirs(os.path.dirname(path))
    replace(path, kind)
    with bounded():
        assert Cursor(path, ManualClock(), silent_log()).position is None
