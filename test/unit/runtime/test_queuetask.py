"""A daemon whose work is one queue: what the runner asks of it besides the pass itself."""

from swift.runtime.daemon import PassReport
from swift.runtime.queuetask import QueueTask

NOTHING = PassReport({}, 0.0, 0.0)


class Registry(QueueTask):
    share = "buckets"


def test_the_queue_is_the_only_share():
    assert QueueTask().shares() == ["queue"]


def test_a_task_may_call_its_share_by_another_name():
    assert Registry().shares() == ["buckets"]


def test_nothing_is_told_in_the_midst_of_a_pass_beyond_how_far_it_is():
    assert QueueTask().progress(NOTHING) == {}
