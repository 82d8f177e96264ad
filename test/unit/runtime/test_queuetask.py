"""A daemon whose work is one queue: what the runner asks of it besides the pass itself."""

from swift.runtime.daemon import PassReport
from swift.runtime.queuetask import QueueTask, iterate_until_error
from swift.runtime.report import Counters
from swift.telemetry.telemetry import Telemetry
from test.support.daemons import LogLines

NOTHING = PassReport({}, 0.0, 0.0)


class Registry(QueueTask):
    share = "buckets"


def breaks_off():
    yield 1
    raise OSError("away")


def test_the_queue_is_the_only_share():
    assert QueueTask().shares() == ["queue"]


def test_a_task_may_call_its_share_by_another_name():
    assert Registry().shares() == ["buckets"]


def test_nothing_is_told_in_the_midst_of_a_pass_beyond_how_far_it_is():
    assert QueueTask().progress(NOTHING) == {}


def test_what_cannot_be_read_of_a_queue_is_told_and_counted_and_ends_nothing_else():
    log = LogLines()
    counters = Counters(Telemetry(log), "test")
    assert list(iterate_until_error(breaks_off(), "q/1", counters, log)) == [1]
    assert (counters.counts, log.lines) == ({"errors": 1}, ["ERROR ERROR cannot read q/1: away"])
