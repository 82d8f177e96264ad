"""Nodes that gave no answer are left alone for a while, by their server and not by their device."""

from dataclasses import replace

from swift.base.clock import ManualClock
from swift.cluster.absent import LEFT_ALONE_S, Absent
from test.support.daemons import make_node


def test_a_node_that_gave_no_answer_is_absent_with_all_its_devices_for_a_while():
    clock = ManualClock(5.0)
    absent = Absent(clock)
    absent.note(make_node(1))
    assert absent.has(make_node(1)) and absent.has(replace(make_node(1), id=9, device="other"))
    assert not absent.has(make_node(2))
    assert str(make_node(1).replication_port) in repr(absent)
    clock.advance(LEFT_ALONE_S)
    assert not absent.has(make_node(1))


def test_all_can_be_asked_again():
    absent = Absent(ManualClock(5.0))
    absent.note(make_node(1))
    absent.clear()
    assert not absent.has(make_node(1))
