"""Lines keep slow nodes from pacing an upload, within memory and patience (doc/explanation/striping.md).

``SWIFT_LINES_SEEDS`` is how many random uploads are tried.
"""

import os
import random
from types import SimpleNamespace

import pytest

from swift import green
from swift.base.clock import SystemClock
from swift.cluster.transport import BackendResponse, TransportError
from swift.http.response import HTTPError
from swift.proxy.obj.commit.targets import UploadTarget
from swift.proxy.obj.write.queues import QueueLimits, SendQueues
from test.support.checks import every

SEEDS = int(os.environ.get("SWIFT_LINES_SEEDS", "60"))
UNIT = 1000
#: After which an exchange with a node that hangs fails.
TIMEOUT_S = 0.3


class Node:
    """An exchange with a node that takes each piece after a pause, hangs, or fails."""

    continue_headers = {}

    def __init__(self, pause_s=0.0, *, hangs_after=None, fails_after=None, timeout_s=TIMEOUT_S):
        self.pause_s = pause_s
        self.timeout_s = timeout_s
        self.hangs_after = hangs_after
        self.fails_after = fails_after
        self.pieces = []
        self.is_finished = self.is_aborted = False

    def send(self, data):
        taken = len(self.pieces)
        if self.hangs_after is not None and taken >= self.hangs_after:
            green.sleep(self.timeout_s)
            raise TransportError("timeout")
        green.sleep(self.pause_s)
        if self.fails_after is not None and taken >= self.fails_after:
            raise TransportError("gone")
        self.pieces.append(bytes(data))

    def finish(self, trailers=None):
        self.is_finished = True

    def abort(self):
        self.is_aborted = True


class Told:
    """Backends that are told of failures."""

    def __init__(self):
        self.failures = []

    def record_failure(self, node, error, headers):
        self.failures.append(node)

    def response(self, node, exchange, headers):
        assert exchange.is_finished
        return BackendResponse(201)


class Upload:
    """One body on its way."""

    def __init__(self, nodes, need, *, memory, patience_s, is_shared=True):
        self.nodes = nodes
        self.told = Told()
        self.sinks = [
            UploadTarget(SimpleNamespace(key=str(n)), node, {}, self.told) for n, node in enumerate(nodes)
        ]
        self.left = []
        self.lines = SendQueues(
            self.sinks,
            need,
            QueueLimits(UNIT, memory, patience_s),
            is_shared=is_shared,
            clock=SystemClock(),
            leave=lambda sink, _line: self.left.append(sink),
        )
        self.most = self.released = self.sent = 0

    def send(self, count):
        for number in range(count):
            self.lines.send(bytes([number % 251]) * UNIT, UNIT, self.release)
            self.sent += 1
            self.lines.await_room(UNIT)
            self.most = max(self.most, self.lines.held_bytes + UNIT)
        for sink in self.sinks:
            sink.finish()

    def release(self):
        self.released += 1

    def settle(self):
        for sink in self.sinks:
            if sink.alive:
                sink.final_response()

    def stop(self):
        for sink in self.sinks:
            sink.abandon()


def wanted(count):
    return [bytes([number % 251]) * UNIT for number in range(count)]


@pytest.mark.long
@every("seed", range(SEEDS))
def test_every_byte_comes_in_order_and_no_more_is_held_or_left_than_may_be(seed):
    draw = random.Random(seed)
    total = draw.randint(2, 6)
    need = draw.randint(1, total)
    count = draw.randint(1, 40)
    nodes = [Node(draw.choice((0.0, 0.0, 0.0005, 0.002))) for _ in range(total)]
    for node in draw.sample(nodes, draw.randint(0, total - need)):
        place = draw.randint(0, count)
        if draw.random() < 0.5:
            node.hangs_after = place
        else:
            node.fails_after = place
    memory = draw.randint(2, 12) * UNIT
    upload = Upload(nodes, need, memory=memory, patience_s=draw.choice((0.005, 0.02, 1.0)))
    try:
        upload.send(count)
    except HTTPError:
        assert sum(sink.alive for sink in upload.sinks) < need
        assert any(node.hangs_after is not None or node.fails_after is not None for node in nodes)
    else:
        upload.settle()
        for sink, node in zip(upload.sinks, nodes, strict=True):
            assert node.pieces == wanted(count)[: len(node.pieces)]
            assert not sink.alive or (len(node.pieces) == count and node.is_finished)
    assert upload.most <= max(memory, 2 * UNIT)
    assert len(upload.left) <= total - need
    upload.stop()
    green.sleep(0)
    assert upload.released == upload.sent, "nothing is held any more, and nothing was given back twice"


def test_below_what_is_needed_it_is_503():
    nodes = [Node(), Node(fails_after=3), Node(fails_after=5)]
    upload = Upload(nodes, 2, memory=4 * UNIT, patience_s=1.0)
    with pytest.raises(HTTPError) as error:
        upload.send(40)
    assert error.value.response.status == 503
    assert len(upload.told.failures) == 2
    upload.stop()


def test_a_node_that_is_a_little_slow_is_not_left_for_what_another_costs():
    nodes = [Node(), Node(0.001), Node(hangs_after=2, timeout_s=4.0)]
    # 40 times what the slow one takes, and the machine may be busy.
    upload = Upload(nodes, 1, memory=8 * UNIT, patience_s=1.0)
    upload.send(40)
    assert upload.left == [upload.sinks[2]]
    assert nodes[2].is_aborted and not nodes[1].is_aborted
    upload.settle()
    assert nodes[0].pieces == nodes[1].pieces == wanted(40)
    upload.stop()


def test_what_is_not_shared_is_held_for_each():
    slow = Node(0.005)
    upload = Upload([Node(), slow, Node(0.005)], 1, memory=8 * UNIT, patience_s=5.0, is_shared=False)
    upload.send(20)
    assert upload.most <= 8 * UNIT
    upload.settle()
    assert slow.pieces == wanted(20)
    upload.stop()


def test_what_is_abandoned_is_not_sent_any_more():
    nodes = [Node(), Node(hangs_after=0)]
    upload = Upload(nodes, 1, memory=100 * UNIT, patience_s=5.0)
    upload.send(5)
    green.sleep(0)
    upload.stop()
    green.sleep(0)
    assert nodes[1].pieces == [] and nodes[1].is_aborted
    assert upload.released == 5
