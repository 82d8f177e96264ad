"""Our sender says what the peer's said about the same objects (spec: replication.md §3), in any order."""

from __future__ import annotations

import re
from functools import partial

from swift.cluster.transport import BackendResponse
from swift.http.body import InMemoryBody
from swift.obj.ssync.sender import Sender, SenderTimes, SsyncJob
from swift.ring.device import Node
from swift.wire.ssync import LineReader
from test.golden.ssync.conftest import EC42, GOLD
from test.golden.ssync.test_receiver import bursts, converse

NODE = Node(1, 1, 1, "127.0.0.1", 1, "127.0.0.1", 1, "sdb", 1.0, "", index=1)


def payload(data):
    """The bytes in a chunked body, whose head may precede it."""
    if data.startswith((b"SSYNC", b"HTTP/1.1")):
        data = data.partition(b"\r\n\r\n")[2]
    pieces = []
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        pieces.append(data[:length])
        data = data[length + 2 :]
    return b"".join(pieces)


class Recorded:
    """A transport that answers as the recorded receiver did, and keeps what it is told."""

    def __init__(self, answers):
        self.answers = answers
        self.head = None
        self.said = b""

    def stream(self, request):
        method, path, headers = request.method, request.path, request.headers
        self.head = method, path, headers
        return self

    def duplex(self, timeout_s):
        return BackendResponse(200, {"x-backend-accept-no-commit": "True"}, stream=InMemoryBody(self.answers))

    def send(self, data):
        self.said += bytes(data)

    def finish(self, trailers=None):
        pass

    def abort(self):
        pass


def told(stream):
    """What a sender's stream says, whatever the order: lines of the missing check, and changes in order."""
    check, _, updates = stream.partition(b":UPDATES: START\r\n")
    lines = sorted(line for line in check.split(b"\r\n") if line and not line.startswith(b":MISSING"))
    left = [updates]
    reader = LineReader(lambda: left.pop() if left else b"")
    changes = {}
    while (change := reader.next_subrequest()) is not None:
        body = b""
        while len(body) < change.body_bytes:
            body += reader.take(change.body_bytes - len(body))
        changes.setdefault(change.path, []).append((change.encode(), body))
    return lines, changes


def push(receiver, recorded, policy, **more):
    responses = b"".join(payload(data) for direction, data in recorded if direction == "R->S")
    transport = Recorded(responses)
    context = receiver.context
    sender = Sender(
        transport,
        partial(receiver.stores.at, policy),
        SenderTimes(),
        agent="test",
        now_s=context.clock.time,
        log=context.telemetry.log,
    )
    device = more.pop("device")
    store = receiver.stores.engine(policy)
    suffixes = sorted(store.hashes(device, "8", policy, list_suffixes=True))
    sender.push(SsyncJob(device, "8", policy, NODE, suffixes, **more))
    return transport


def test_objects_of_all_kinds_are_offered_and_sent_as_recorded(prepared):
    recorded = bursts("ssync-replicated.jsonl")
    converse(prepared, recorded)
    transport = push(prepared, recorded, GOLD, device="sdb")
    expected = b"".join(payload(data) for direction, data in recorded if direction == "S->R")
    assert told(transport.said) == told(expected)
    method, path, headers = transport.head
    assert (method, path) == ("SSYNC", "/sdb/8")
    assert headers["x-backend-storage-policy-index"] == "0"


def test_archives_that_nobody_committed_are_told_and_sent_as_such(receiver):
    recorded = bursts("ssync-ec-revert.jsonl")
    expected = b"".join(payload(data) for direction, data in recorded if direction == "S->R")
    # Afterwards the receiver has what the sender had, one of them committed.
    headers = {
        "x-backend-storage-policy-index": "1",
        "x-object-sysmeta-ec-frag-index": "5",
        "x-backend-no-commit": "true",
    }
    for name, at in (("nd10", "5000000031.00000"), ("nd29", "5000000032.00000")):
        assert receiver.ask("PUT", f"/ec7/8/AUTH_test/c/{name}", at, b"archive", **headers).status == 201
    converse(receiver, recorded)
    lines, changes = told(expected)
    index = int(re.search(rb"(?i)frag-index: (\d+)", recorded[0][1])[1])
    transport = push(receiver, recorded, EC42, device="ec7", fragment=index, target=index, uncommitted=True)
    assert told(transport.said) == (lines, changes)
    assert transport.head[2]["x-backend-ssync-frag-index"] == str(index)
