"""Who lacks databases says so once to each who may have them, and those make them look changed."""

import json
import os
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.errors import InvalidValue
from swift.cluster.direct import DirectClient, NodeTimeouts
from swift.cluster.transport import BackendResponse, TransportError
from swift.db.files import DatabasePath
from swift.dbsync.missingdatabases import (
    PARTITIONS_MAX,
    MissingDatabases,
    partitions_in,
    touch,
    touched_count,
    touched_partitions,
)
from swift.http import fields
from swift.platform.disk import Disk
from test.support.daemons import LogLines, ScriptedNodes, make_node

FLAG = {fields.BACKEND_LOST_PARTITIONS: "true"}


class View:
    """A ring of four devices; device 0 shares its even partitions with 1 and 2, its odd ones with 1 and 3."""

    def __init__(self, parts=10):
        self.devices = tuple(make_node(number) for number in range(4))
        self.parts = parts

    def parts_of(self, dev_id):
        assert dev_id == 0
        return frozenset(range(self.parts))

    def primaries(self, part):
        return tuple(self.devices[number] for number in (0, 1, 2 + part % 2))


class Nodes(ScriptedNodes):
    """Remembers what everybody heard."""

    def __init__(self):
        super().__init__()
        self.heard = []

    def request(self, request):
        port, method = request.node.port, request.method
        path, headers, body = request.path, request.headers, request.body
        reply = super().request(request)
        assert method == "REPLICATE" and headers[fields.BACKEND_LOST_PARTITIONS] == "true"
        assert path == f"/d{port - 6200}/{json.loads(body)[0]}"
        self.heard.append((port - 6200, json.loads(body)))
        return reply


class Bench:
    """One device in a cluster."""

    def __init__(self, **view):
        self.view, self.missing_databases, self.nodes, self.log = (
            View(**view),
            MissingDatabases(),
            Nodes(),
            LogLines(),
        )
        self.direct = DirectClient(self.nodes, "container-replicator", NodeTimeouts(1, 1))

    def passes(self, present, gone=(), may_continue=lambda: True, own_ids=frozenset({0})):
        """What is heard after a pass that saw these partitions."""
        self.nodes.heard.clear()
        self.missing_databases.note(self.view, own_ids, set(present), set(gone))
        self.missing_databases.tell(self.view, self.direct, self.log, may_continue)
        return sorted(self.nodes.heard)


def test_partitions_without_databases_are_told_of_once():
    bench = Bench()
    assert bench.passes(range(8)) == [(1, [8, 9]), (2, [8]), (3, [9])]
    assert bench.passes(range(8)) == []


def test_an_exchanged_device_lacks_what_it_had():
    bench = Bench()
    bench.passes(range(8))
    assert bench.passes([]) == [(1, [*range(8)]), (2, [0, 2, 4, 6]), (3, [1, 3, 5, 7])]
    assert bench.passes([]) == []
    assert bench.passes(range(8)) == []
    assert bench.passes(range(1, 8)) == [(1, [0]), (2, [0])]


def test_a_database_that_is_gone_is_told_of_although_its_partition_is_there():
    bench = Bench()
    bench.passes(range(10))
    assert bench.passes(range(10), gone=[3]) == [(1, [3]), (3, [3])]
    assert bench.passes(range(10)) == []


@pytest.mark.parametrize("answer", [TransportError("away"), 503, 507])
def test_who_does_not_hear_it_is_told_again(answer):
    bench = Bench()
    bench.nodes.answers[1] = answer
    bench.passes(range(9))
    assert any("cannot be notified" in line for line in bench.log.lines)
    del bench.nodes.answers[1]
    assert bench.passes(range(9)) == [(1, [9])]


@pytest.mark.parametrize("status", [400, 404, 405])
def test_one_that_does_not_know_the_question_is_not_asked_again(status):
    bench = Bench()
    bench.nodes.answers[1] = status
    bench.passes(range(9))
    assert bench.passes(range(9)) == []


def test_many_are_told_in_portions():
    bench = Bench(parts=PARTITIONS_MAX + 3)
    heard = bench.passes([])
    assert [(number, len(parts)) for number, parts in heard if number == 1] == [(1, PARTITIONS_MAX), (1, 3)]


def test_all_devices_of_a_server_that_is_away_cost_one_wait():
    bench = Bench()
    bench.view.devices = tuple(
        SimpleNamespace(
            id=n,
            device=f"d{n}",
            replication_ip="127.0.0.1",
            replication_port=6200,
            replication_key="",
            key="",
        )
        for n in range(4)
    )
    bench.nodes.answers[0] = TransportError("away")
    bench.passes([])
    assert len(bench.nodes.requests) == 1


def test_it_ends_when_the_daemon_is_to_end():
    bench = Bench()
    assert bench.passes([], may_continue=lambda: False) == []
    assert bench.passes([]) != []


def test_devices_that_left_the_ring_are_forgotten():
    bench = Bench()
    bench.passes([], may_continue=lambda: False)
    bench.view.devices = (*bench.view.devices[:3], None)
    assert {number for number, _ in bench.passes([])} == {1, 2}
    bench.view.devices = bench.view.devices[:1]
    assert bench.passes([]) == []


def test_a_device_that_left_the_ring_meanwhile_lacks_nothing():
    bench = Bench()
    assert bench.passes([], own_ids=frozenset()) == []
    assert bench.passes(range(9)) == [(1, [9]), (3, [9])]


def test_a_new_ring_brings_partitions_that_are_not_here_yet():
    bench = Bench()
    bench.passes(range(10))
    bench.view = View(parts=12)
    assert bench.passes(range(10)) == [(1, [10, 11]), (2, [10]), (3, [11])]


def test_the_operator_hears_how_many_databases_others_have():
    bench = Bench()
    bench.nodes.answers[1] = BackendResponse(200, FLAG, b'{"databases": 7}')
    bench.passes([])
    assert any("10.0.0.1" not in line and "will push 7 databases" in line for line in bench.log.lines)


@pytest.mark.parametrize(
    ("reply", "count"),
    [
        (BackendResponse(200, FLAG, b'{"databases": 7}'), 7),
        (BackendResponse(200, {}, b'{"databases": 7}'), 0),
        *(
            (BackendResponse(200, FLAG, body), 0)
            for body in (b"", b"[]", b"7", b"{}", b'{"databases": "x"}', b"[" * 9999)
        ),
    ],
)
def test_an_answer_of_nonsense_is_none(reply, count):
    assert touched_count(reply) == count


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"7", b"[", b"[-1]", b"[true]", b"[1.0]", b'["1"]', b"[4294967296]", b"[" * 9999]
    + [json.dumps([1] * (PARTITIONS_MAX + 1)).encode()],
)
def test_a_message_of_nonsense_is_refused(body):
    with pytest.raises(InvalidValue):
        partitions_in(body)


@given(st.binary(max_size=50))
def test_no_bytes_are_more_than_refused(body):
    try:
        partitions_in(body)
    except InvalidValue:
        return


def test_databases_of_the_partitions_look_changed_and_others_do_not(tmp_path):
    paths = {}
    for partition in ("1", "2", "3"):
        place = DatabasePath(str(tmp_path), "containers", partition, partition * 32)
        os.makedirs(place.directory)
        paths[partition] = [
            f"{place.directory}/{partition * 32}{end}" for end in (".db", "_1700000000.00000.db")
        ]
        for path in paths[partition]:
            open(path, "w").close()
            os.utime(path, (1, 1))
    (tmp_path / "containers" / "2" / "stray").touch()
    assert touch(Disk(), str(tmp_path), "containers", ["1", "2", "9"]) == {
        "databases": 2,
        "partitions": [1, 2],
    }
    changed = {
        partition: [os.stat(path).st_mtime > 1 for path in found] for partition, found in paths.items()
    }
    assert changed == {"1": [True, True], "2": [True, True], "3": [False, False]}


def test_a_database_that_goes_meanwhile_is_none(tmp_path):
    place = DatabasePath(str(tmp_path), "containers", "1", "1" * 32)
    os.makedirs(place.directory)

    class Going(Disk):
        def touch(self, path):
            os.unlink(path)
            super().touch(path)

    open(f"{place.directory}/{'1' * 32}.db", "w").close()
    assert touch(Going(), str(tmp_path), "containers", ["1"]) == {"databases": 0, "partitions": []}


def test_what_others_have_is_lacking_until_it_came_or_belongs_elsewhere():
    bench = Bench(parts=4)
    assert bench.missing_databases.lacking(()) == 0
    for number, held in ((1, b"[0, 1, 3]"), (2, b"[0]"), (3, b"[1]")):
        bench.nodes.answers[number] = BackendResponse(200, FLAG, b'{"databases": 9, "partitions": %b}' % held)
    bench.passes(present=[])
    assert bench.missing_databases.lacking(()) == 3
    bench.passes(present=[0])
    assert bench.missing_databases.lacking({0}) == 2
    assert bench.missing_databases.lacking({0, 1}) == 1, "it came since the pass"
    bench.view = View(parts=3)
    bench.passes(present=[0, 1])
    assert bench.missing_databases.lacking({0, 1}) == 0, "partition 3 belongs elsewhere now"


@pytest.mark.parametrize("body", [b"[]", b"{", b"{}", b'{"partitions": 7}', b'{"partitions": ["x", null]}'])
def test_an_answer_that_names_no_partitions_says_nothing_of_them(body):
    assert touched_partitions(BackendResponse(200, FLAG, body)) == set()
