"""The loop of all daemons: when passes start, how units run, what is told, how it ends."""

import io
import random

import pytest

from swift import green
from swift.base.clock import SystemClock
from swift.runtime.daemon import JITTER, PassReport, Runner, Schedule, run_all_forever
from swift.runtime.sharerun import ShareResult
from swift.runtime.stop import StopRequest, make_blocking_stop_request
from test.support.daemons import CountingTask, DaemonFixture

HOUR_S = 3600.0


@pytest.fixture
def rig(tmp_path):
    return DaemonFixture(tmp_path)


def stop_after(rig, seconds):
    """Request the end when so much virtual time has passed."""
    end = rig.clock.now_s + seconds
    sleep = rig.clock.sleep

    def sleeping(slice_s):
        sleep(slice_s)
        if rig.clock.now_s >= end:
            rig.stop.request()

    rig.stop._sleep = sleeping


def test_once_does_every_unit_of_every_share_and_reports(rig):
    task = CountingTask(units=4, shares=("sda", "sdb"))
    assert rig.runner(task).run_once()
    (passed,) = task.reports
    assert {share: result.units for share, result in passed.results.items()} == {"sda": 4, "sdb": 4}
    assert passed.results["sdb"].facts == {"share": "sdb"}
    assert passed.results["sdb"].counts == {"successes": 4}
    assert rig.recon("object").read() == {"counter_last": rig.clock.now_s, "counter_sweep": 0.0}


def test_a_report_adds_up_what_the_shares_counted():
    results = {"sda": ShareResult(counts={"moved": 2, "kept": 1}), "sdb": ShareResult(counts={"moved": 3})}
    passed = PassReport(results, 0.0, 0.0)
    assert passed.count("moved") == 5
    assert passed.counts(("moved", "kept", "lost")) == {"moved": 5, "kept": 1, "lost": 0}


@pytest.mark.long
def test_a_day_of_passes_starts_one_per_interval_with_jitter(rig):
    task = CountingTask()
    stop_after(rig, 24 * HOUR_S)
    rig.runner(task, Schedule(interval_s=300), rng=random.Random(5)).run_forever()
    times = [at for _, at in task.starts]
    gaps = [b - a for a, b in zip(times, times[1:], strict=False)]
    assert 0 < times[0] - 5_000_000_000.0 <= 300
    assert min(gaps) >= 300 * (1 - JITTER) - 1e-3
    assert max(gaps) <= 300 + 1e-3
    assert len(set(gaps)) > 50
    assert 287 <= len(times) <= 320


def test_nodes_start_at_different_moments(tmp_path):
    firsts = set()
    for seed in range(5):
        rig = DaemonFixture(tmp_path / str(seed))
        task = CountingTask()
        stop_after(rig, 600)
        rig.runner(task, Schedule(interval_s=300), rng=random.Random(seed)).run_forever()
        firsts.add(task.starts[0][1])
    assert len(firsts) == 5


def test_a_pass_longer_than_the_interval_is_followed_by_the_next_at_once(rig):
    task = CountingTask(units=10, act=lambda turn, _unit: rig.clock.advance(60))
    stop_after(rig, 10 * HOUR_S)
    rig.runner(task, Schedule(interval_s=300), rng=random.Random(1)).run_forever()
    assert 55 <= len(task.starts) <= 61


def test_the_pace_is_even_over_hours(rig):
    moments = []
    task = CountingTask(units=20_000, act=lambda turn, _unit: moments.append(rig.clock.now_s))
    rig.runner(task, Schedule(interval_s=300, units_per_second=2)).run_once()
    gaps = [b - a for a, b in zip(moments, moments[1:], strict=False)]
    assert min(gaps) > 0.49
    assert abs(moments[-1] - moments[0] - 9999.5) < 1


def test_units_run_at_the_same_time_up_to_the_concurrency(rig):
    running, peak = [], []

    def act(_turn, unit):
        running.append(unit)
        peak.append(len(running))
        for _ in range(3):
            green.sleep()
        running.remove(unit)

    task = CountingTask(units=20, act=act)
    assert rig.runner(task, Schedule(30, concurrency=4)).run_once()
    assert max(peak) == 4
    assert not running
    assert task.reports[0].results["sda"].units == 20


@pytest.mark.parametrize("concurrency", [1, 5])
@pytest.mark.parametrize("error", [ValueError("unforeseen"), OSError(5, "bad disk")])
def test_a_failing_unit_is_counted_and_takes_no_other_with_it(rig, concurrency, error):
    def act(_turn, unit):
        if unit == 2:
            raise error

    task = CountingTask(units=5, act=act)
    assert rig.runner(task, Schedule(30, concurrency=concurrency)).run_once()
    result = task.reports[0].results["sda"]
    assert result.units == 5
    assert result.counts == {"successes": 5, "errors": 1}


def test_a_share_that_cannot_be_planned_leaves_the_others_alone(rig):
    def units(turn):
        yield 1
        if turn.share == "sda":
            raise OSError(5, "bad disk")
        yield 2

    task = CountingTask(units=units, shares=("sda", "sdb"))
    assert rig.runner(task).run_once()
    results = task.reports[0].results
    assert results["sda"].counts == {"successes": 1, "errors": 1}
    assert results["sdb"].units == 2


def test_a_failing_pass_does_not_end_the_daemon(rig):
    task = CountingTask()
    task.shares = lambda: 1 / 0
    stop_after(rig, HOUR_S)
    rig.runner(task, Schedule(interval_s=60)).run_forever()
    assert not task.starts
    assert rig.clock.slept >= HOUR_S


@pytest.mark.parametrize("concurrency", [1, 4])
def test_stopping_ends_at_the_next_unit_and_reports_no_half_pass(rig, concurrency):
    done = []

    def act(_turn, unit):
        if unit == 3:
            rig.stop.request()
        green.sleep()
        done.append(unit)

    task = CountingTask(units=1000, shares=("sda", "sdb"), act=act)
    assert rig.runner(task, Schedule(30, concurrency=concurrency)).run_once() is False
    assert 4 <= len(done) <= 4 + concurrency
    assert len(task.starts) == 1
    assert not task.reports
    assert rig.recon("object").read() == {}


def test_counts_are_on_the_prometheus_page(rig):
    runner = rig.runner(CountingTask(units=3))
    runner.run_once()
    runner.run_once()
    page = (rig.root.parent / "recon" / "counter.prom").read_text()
    assert 'swift_daemon_events_total{daemon="counter",event="successes"} 6' in page
    assert 'swift_daemon_units_total{daemon="counter"} 6' in page
    assert 'swift_daemon_passes_total{daemon="counter"} 2' in page


def test_a_terminal_sees_progress_and_is_left_clean(rig):
    terminal = io.StringIO()
    task = CountingTask(units=30, act=lambda turn, _unit: rig.clock.advance(0.1))
    rig.runner(task, terminal=terminal).run_once()
    shown = terminal.getvalue().split("\r")
    assert any("sda: 21 done in 2.1s, 10.0/s; 21 successes" in line for line in shown)
    assert terminal.getvalue().endswith("\r\x1b[K\r")


def test_a_share_that_hangs_does_not_hold_up_the_others(rig):
    hang = green.Event()
    clock = SystemClock()
    done = []

    def act(turn, unit):
        if turn.share == "sda" and unit == 1:
            hang.wait()
        done.append((turn.share, unit))

    task = CountingTask(units=3, shares=("sda", "sdb"), act=act)
    runner = Runner(
        task,
        Schedule(30, stall_s=0.2),
        telemetry=rig.telemetry,
        recon=rig.recon("object"),
        stop=StopRequest(clock),
        clock=clock,
    )
    assert runner.run_once()
    assert set(task.reports[0].results) == {"sdb"}
    assert runner.run_once()
    assert set(task.reports[1].results) == {"sdb"}, "it is left out while it hangs"
    hang.set()
    green.sleep(0.05)
    assert ("sda", 2) not in done, "what was given up ends at its next unit"
    assert runner.run_once()
    assert set(task.reports[2].results) == {"sda", "sdb"}


@pytest.mark.long
def test_a_long_pass_says_how_far_it_is_and_takes_it_back_at_its_end(rig):
    clock = SystemClock()
    seen = []

    def act(turn, unit):
        green.sleep(0.3)
        seen.append(rig.recon("object").read().get("daemon_progress"))

    task = CountingTask(units=5, act=act)
    runner = Runner(
        task,
        Schedule(30, report_interval_s=0.1),
        telemetry=rig.telemetry,
        recon=rig.recon("object"),
        stop=StopRequest(clock),
        clock=clock,
    )
    assert runner.run_once()
    units = [each["counter"]["sda"]["units"] for each in seen if each]
    assert units
    assert 0 < max(units) < 5
    assert task.told
    assert "counter" not in rig.recon("object").read().get("daemon_progress", {})


@pytest.mark.long
def test_two_tasks_of_one_process_keep_their_own_schedules(rig):
    clock = SystemClock()
    stop = StopRequest(clock)
    often, seldom = CountingTask(), CountingTask()
    often.name, seldom.name = "often", "seldom"

    def runner(task, interval_s):
        return Runner(
            task,
            Schedule(interval_s),
            telemetry=rig.telemetry,
            recon=rig.recon("object"),
            stop=stop,
            clock=clock,
            rng=random.Random(1),
        )

    green.spawn_after(2.0, stop.request)
    run_all_forever([runner(often, 0.1), runner(seldom, 0.8)], stop)
    assert len(often.starts) >= 2 * len(seldom.starts) >= 2


@pytest.mark.process
def test_two_tasks_whose_shares_are_processes_go_on_beside_each_other(rig):
    clock = SystemClock()
    stop = make_blocking_stop_request(clock)
    slow, quick = CountingTask(act=lambda turn, unit: green.sleep(0.4)), CountingTask()
    slow.name, quick.name = "slow", "quick"

    def runner(task):
        return Runner(
            task,
            Schedule(0.1),
            telemetry=rig.telemetry,
            recon=rig.recon("object"),
            stop=stop,
            clock=clock,
            forks=True,
        )

    quick_reports = quick.report

    def report(passed):
        if len(quick.reports) >= 3:
            stop.request()
        return quick_reports(passed)

    quick.report = report
    run_all_forever([runner(slow), runner(quick)], stop)
    assert len(quick.reports) >= 3
    assert len(slow.reports) < len(quick.reports)
