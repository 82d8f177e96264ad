"""Worker processes of a pass: results come back, failures cost one share, stopping reaches all."""

import os
import signal
import threading
import time

import pytest

from swift.runtime.daemon import Schedule
from swift.runtime.sharerun import ShareResult
from swift.runtime.shareworkers import ShareWorkers
from swift.runtime.stop import make_blocking_stop_request
from swift.telemetry.log import silent_log
from test.support.daemons import CountingTask, DaemonFixture

pytestmark = pytest.mark.process


def run(work, shares="abcd", limit=2, stop=None, *, workers=None, told=None, stall_s=0.0, **more):
    """Do shares in processes; the facts of those that ended well."""
    workers = workers or ShareWorkers(silent_log(), **more)
    results = {}

    def tell(share, so_far):
        if told is not None:
            told.append((share, so_far.units))

    def result_of(share, say):
        facts = work(share) if told is None else work(share, say)
        return ShareResult(facts)

    for _ in workers.run(
        list(shares), result_of, limit, stop or make_blocking_stop_request(), results, tell, stall_s
    ):
        time.sleep(0.005)
    return {share: result.facts for share, result in results.items()}


def test_every_share_runs_in_a_process_of_its_own():
    results = run(lambda share: {"share": share, "pid": os.getpid()})
    assert {result["share"] for result in results.values()} == set("abcd")
    assert len({result["pid"] for result in results.values()} | {os.getpid()}) == 5


def test_large_results_come_back_whole():
    results = run(lambda share: {"text": share * 500_000})
    assert results["c"] == {"text": "c" * 500_000}


def test_a_worker_that_fails_or_is_killed_costs_only_its_share():
    def work(share):
        if share == "a":
            raise ValueError("unforeseen")
        if share == "b":
            os.kill(os.getpid(), signal.SIGKILL)
        return {}

    assert set(run(work)) == {"c", "d"}


def test_at_most_so_many_run_at_a_time(tmp_path):
    def work(share):
        mark = tmp_path / share
        mark.touch()
        seen = len(list(tmp_path.iterdir()))
        time.sleep(0.05)
        mark.unlink()
        return {"seen": seen}

    results = run(work, "abcdef", limit=2)
    assert max(result["seen"] for result in results.values()) <= 2


def test_a_stop_is_told_to_the_workers_and_starts_no_more():
    stop = make_blocking_stop_request()

    def work(share):
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        time.sleep(30)
        return {}

    threading.Timer(0.3, stop.request).start()
    started = time.monotonic()
    run(work, "abc", stop=stop, grace_s=0.5)
    assert time.monotonic() - started < 5


def test_workers_that_do_not_listen_are_killed():
    stop = make_blocking_stop_request()

    def work(share):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(30)
        return {}

    threading.Timer(0.2, stop.request).start()
    started = time.monotonic()
    assert run(work, "ab", stop=stop, grace_s=0.2) == {}
    assert time.monotonic() - started < 5


def test_workers_tell_how_far_they_are(tmp_path):
    told = []

    class Told:
        """Remembers what was told; workers go on when they were heard."""

        def append(self, item):
            told.append(item)
            (tmp_path / "{}{}".format(*item)).touch()

    def work(share, say):
        for units in (1, 2):
            say(ShareResult(units=units))
            while not (tmp_path / f"{share}{units}").exists():
                time.sleep(0.005)
        return {"share": share}

    assert run(work, "ab", told=Told()) == {"a": {"share": "a"}, "b": {"share": "b"}}
    assert set(told) == {(share, units) for share in "ab" for units in (1, 2)}


def test_a_silent_worker_is_killed_and_its_share_tried_again_in_the_next_pass():
    workers = ShareWorkers(silent_log())

    def hang(share):
        if share == "a":
            time.sleep(60)
        return {}

    started = time.monotonic()
    assert set(run(hang, "ab", workers=workers, stall_s=0.2)) == {"b"}
    assert time.monotonic() - started < 5
    while not all(child.has_ended() for child in workers._left_behind.values()):
        time.sleep(0.01)
    assert set(run(lambda share: {}, "ab", workers=workers)) == {"a", "b"}


def test_a_runner_with_workers_joins_their_results_and_counts(tmp_path):
    rig = DaemonFixture(tmp_path)
    rig.stop = make_blocking_stop_request()
    task = CountingTask(units=3, shares=("sda", "sdb", "sdc"))
    assert rig.runner(task, Schedule(30, workers=2)).run_once()
    (passed,) = task.reports
    assert {share: result.units for share, result in passed.results.items()} == dict.fromkeys(
        ("sda", "sdb", "sdc"), 3
    )
    page = (tmp_path / "recon" / "counter.prom").read_text()
    assert 'event="successes"} 9' in page
