"""Recorded SSYNC conversations are answered byte for byte (spec: replication.md §3)."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import pytest

DATA = Path(__file__).parent.parent / "data" / "ssync"
ERRORS = json.loads((DATA / "ssync-errors.json").read_text())
_DATE = re.compile(rb"Date: [^\r]*\r\n")
#: Texts that nobody reads by machine: only the status of these errors counts.
FREE_TEXT = {"malformed missing-check line", "replication_concurrency (4) exhausted"}
_ERROR = re.compile(rb":ERROR: \d+ ")


def bursts(name, connection=0):
    """(direction, bytes) of one recorded connection."""
    lines = (DATA / name).read_text().splitlines()[1:]
    records = map(json.loads, lines)
    return [(r["dir"], r["data"].encode("latin-1")) for r in records if r["conn"] == connection]


def timeless(data):
    return _DATE.sub(b"", data)


def read_as_much(wire, wanted):
    """An answer without its date, read until it is as long as the wanted one."""
    response = b""
    while len(timeless(response)) < len(wanted):
        piece = wire.recv()
        if not piece:
            break
        response += piece
    return timeless(response)


def converse(receiver, recorded):
    """Send the sender's bursts; the answers and the recorded answers, each after its burst."""
    wire, got, expected = receiver.wire(), [], []
    for direction, data in recorded:
        if direction == "S->R":
            wire.send(data)
            continue
        expected.append(timeless(data))
        got.append(read_as_much(wire, expected[-1]))
    assert not wire.has_input(0.05)
    wire.close()
    return got, expected


def test_a_conversation_about_replicated_objects_is_answered_as_recorded(prepared):
    got, expected = converse(prepared, bursts("ssync-replicated.jsonl"))
    assert got == expected
    assert sorted(path.rsplit("/", 1)[1] for path in prepared.files()) == [
        "5000000000.00000.data",
        "5000000001.00000.data",
        "5000000002.50000.meta",
        "5000000003.00000.data",
        "5000000005.00000-186a0.meta",
        "5000000007.00000.ts",
        "5000000008.00000_0000000000000001.data",
        "5000000009.00000_00000000000000ab.meta",
        "5000000010.00000.data",
        "5000000012.00000.meta",
        "5000000013.00000.data",
        "5000000014.00000.data",
    ]
    response = prepared.ask("GET", "/sdb/8/AUTH_test/c/obj57", "5000000200.00000")
    assert response.read_body() == b"with ctype"
    assert response.headers["content-type"] == "image/png"
    assert response.headers["x-object-meta-color"] == "green"


def test_the_second_time_nothing_is_wanted(prepared):
    recorded = bursts("ssync-replicated.jsonl")
    converse(prepared, recorded)
    nothing = b"17\r\n:MISSING_CHECK: START\r\n\r\n2\r\n\r\n\r\n15\r\n:MISSING_CHECK: END\r\n\r\n"
    got, expected = converse(prepared, [*recorded[:3], ("R->S", nothing)])
    assert got == expected


def test_archives_arrive_uncommitted_as_they_are_and_those_here_are_committed_when_the_other_is(receiver):
    headers = {
        "x-backend-storage-policy-index": "1",
        "x-object-sysmeta-ec-frag-index": "5",
        "x-backend-no-commit": "true",
    }
    # One is only committed by the conversation, the other stays as it is.
    for name, at in (("nd10", "5000000031.00000"), ("nd29", "5000000032.00000")):
        path = f"/ec7/8/AUTH_test/c/{name}"
        assert receiver.ask("PUT", path, at, b"archive", **headers).status == 201
    got, expected = converse(receiver, bursts("ssync-ec-revert.jsonl"))
    assert got == expected
    assert sorted(path.rsplit("/", 1)[1] for path in receiver.files()) == [
        "5000000030.00000#5.data",
        "5000000031.00000#5#d.data",
        "5000000032.00000#5.data",
    ]


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case["case"])
def test_violations_and_limits_are_answered_as_recorded(make_receiver, case):
    receiver = make_receiver()
    receiver.ask("PUT", "/sdb/8/AUTH_test/c/obj54", "5000000000.00000", b"plain data")
    before = receiver.files()
    with contextlib.ExitStack() as held:
        hold_back(receiver, case["case"], held)
        wire = receiver.wire()
        for step in case["steps"]:
            wire.send(step["send"].encode("latin-1"))
            expected = recorded_answer(step["recv"], receiver)
            response = read_as_much(wire, expected)
            if case["case"] in FREE_TEXT and b":ERROR: " in expected:
                assert _ERROR.findall(response) == _ERROR.findall(expected)
            else:
                assert response == expected
            if step["eof"]:
                assert wire.rest() == b""
        wire.close()
    assert receiver.files() == before


def hold_back(receiver, case, held):
    """Take what the recording's receiver had to wait for."""
    if case.startswith("partition replication lock"):
        policy = receiver.context.policies.default
        held.enter_context(receiver.stores.engine(policy).replication_lock("sdb", "8", policy, 0.0))
    if case.startswith("replication_concurrency"):
        places = receiver.app.ssync_slots
        for place in [places.take() for _ in range(places.count)]:
            held.callback(place.close)


def recorded_answer(text, receiver):
    """A recorded answer with this receiver's lock timeout and paths."""
    data = timeless(text.encode("latin-1"))
    told = b":ERROR: 0 '15 seconds: <devices>/sdb"
    if told in data:
        ours = f":ERROR: 0 '0 seconds: {receiver.root}/sdb/objects/8/.lock-replication'\n".encode()
        data = data[: data.index(b"48\r\n" + told)] + b"%x\r\n%b\r\n" % (len(ours), ours)
    return data


def test_rebuilt_archives_pushed_to_an_empty_node_are_durable_there(receiver):
    """The recording's reconstructor rebuilt archive 3 of every object for a node that had nothing.

    It shows the GETs of the rebuilding between the bursts of the conversation.
    """
    records = [
        burst for number in (5, 7, 9, 11) for burst in bursts("ssync-ec-sync.jsonl", connection=number)
    ]
    asked = [burst for burst in records if burst[1].startswith(b"GET ")]
    responses = [burst for burst in records if burst[1].startswith(b"HTTP/1.1 200") and burst != records[1]]
    got, expected = converse(receiver, [b for b in records if b not in asked and b not in responses])
    assert got == expected
    arrived = [path for path in receiver.files() if path.endswith("#3#d.data")]
    assert len(arrived) == 3
    for name in arrived:
        # Every fragment carries its index first.
        assert (receiver.root / name).read_bytes()[:4] == (3).to_bytes(4, "little")
