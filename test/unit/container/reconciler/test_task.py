"""What becomes of an entry, by what the nodes of its container say, and what the two policies have."""

from __future__ import annotations

import pytest

from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.cluster.transport import BackendResponse, TransportError
from swift.container.reconciler.queue import MisplacedObject
from swift.container.reconciler.task import ContainerReconciler, ContainerReconcilerSettings, claim_of
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.http.response import Response
from test.support.daemons import DaemonFixture, FakeRing, LogLines

#: The rig's clock.
NOW_S = 5_000_000_000
STAMP = Timestamp(NOW_S - 1000)
OLD = {
    "last-modified": "x",
    "etag": "e",
    "x-object-meta-a": "b",
    "x-object-sysmeta-symlink-target": "c/o",
    "x-symlink-target": "c/o",
    "x-symlink-target-etag": "e",
    "x-backend-data-timestamp": "9",
    "date": "x",
}


def above(offset, stamp=STAMP):
    return Timestamp(stamp, offset=offset).internal


def claim(index, *, put=10.0, delete=0.0, status=204, **changes):
    headers = {
        "x-backend-put-timestamp": Timestamp(put).internal,
        "x-backend-delete-timestamp": Timestamp(delete).internal,
        "x-backend-status-changed-at": Timestamp(max(put, delete)).internal,
        "x-backend-storage-policy-index": str(index),
        "x-container-object-count": "0",
    }
    return BackendResponse(status, headers={**headers, **changes})


def entry(index=1, *, stamp=STAMP, is_delete=False, hour="4999996800"):
    path = EntityPath("a", "c", "o")
    return MisplacedObject(hour, f"{index}:/a/c/o", index, path, stamp, Timestamp(NOW_S - 900), is_delete)


class Rings:
    """Everything is on three nodes; ``splitting`` names policies whose partitions are being split."""

    def __init__(self):
        self.container = FakeRing()
        self.splitting = set()

    def object(self, policy):
        ring = FakeRing()
        ring.next_part_power = 9 if policy.index in self.splitting else None
        return ring


class Entries:
    """A queue of some entries."""

    def __init__(self, *entries):
        self.list = list(entries)
        self.left = set()
        self.unreadable = set()
        self.broken = False

    def containers(self, _now_s):
        if self.broken:
            raise UnexpectedResponse("GET", EntityPath(".misplaced_objects"), 503, "away")
        return list(dict.fromkeys(each.container for each in self.list))

    def entries(self, container):
        if container in self.unreadable:
            raise UnexpectedResponse("GET", EntityPath(".misplaced_objects", container), 503, "away")
        yield from [each for each in self.list if each.container == container]

    def is_empty(self, container):
        return container not in self.left


class Bench:
    """``objects`` are what policies have: index → (status, headers). All container servers say policy 0."""

    def __init__(self, root, *entries, **options):
        self.log = LogLines()
        self.rig = DaemonFixture(root, log=self.log)
        self.rings = Rings()
        self.queue = Entries(*(entries or (entry(),)))
        self.objects = {1: (200, {"x-backend-timestamp": STAMP.internal, **OLD})}
        self.refuses = {}
        self.asked = []
        for number in range(3):
            self.rig.nodes.answers[number] = claim(0)
        client = InternalClient(self._handle, "test", tries=1)
        settings = ContainerReconcilerSettings(**options)
        self.task = ContainerReconciler(self.rig.context, self.rings, settings, client, client, self.queue)

    def _handle(self, request):
        index = int(request.headers.get("x-backend-storage-policy-index", "-1"))
        stamp = request.headers.get("x-timestamp")
        self.asked.append((request.method, index, stamp, dict(request.headers)))
        if request.method in self.refuses:
            return Response(self.refuses[request.method])
        if request.method in ("GET", "HEAD"):
            status, headers = self.objects.get(index, (404, {}))
            body = b"body" if status == 200 and request.method == "GET" else b""
            return Response(status, dict(headers), body)
        if request.method == "PUT":
            assert request.body.read() == b"body"
            return Response(201)
        return Response(204)

    def run_once(self):
        """What was counted."""
        assert self.rig.runner(self.task, server_type="container").run_once()
        facts = self.rig.recon("container").read()
        return {name: count for name, count in facts.get("reconciler_stats", {}).items() if count}

    @property
    def changes(self):
        return [
            (method, index, stamp) for method, index, stamp, _ in self.asked if method in ("PUT", "DELETE")
        ]

    @property
    def popped(self):
        return [
            (n, headers["x-timestamp"])
            for n, method, _, headers in self.rig.nodes.requests
            if method == "DELETE"
        ]


@pytest.fixture
def make(tmp_path):
    return lambda *entries, **options: Bench(tmp_path, *entries, **options)


def test_the_right_copy_is_above_the_wrong_one_s_tombstone_and_the_entry_goes_last(make):
    bench = make()
    assert bench.run_once() == {"success": 1}
    assert bench.changes == [("PUT", 0, above(3)), ("DELETE", 1, above(1))]
    assert sorted(bench.popped) == [(n, above(2, Timestamp(NOW_S - 900))) for n in range(3)]


def test_what_belongs_to_the_object_goes_with_it_and_nothing_of_the_answer(make):
    bench = make()
    bench.run_once()
    (sent,) = [headers for method, _, _, headers in bench.asked if method == "PUT"]
    assert (sent["etag"], sent["x-object-meta-a"]) == ("e", "b")
    # A link is moved as it is stored: by what is shown of it another one would be made.
    assert [name for name in sent if "symlink" in name] == ["x-object-sysmeta-symlink-target"]
    assert not {"last-modified", "date", "x-backend-data-timestamp", "x-backend-timestamp"} & sent.keys()


def test_what_was_written_over_the_misplaced_version_since_is_what_moves(make):
    bench = make()
    newer = Timestamp(NOW_S - 500)
    bench.objects[1] = (200, {"x-backend-timestamp": newer.internal})
    assert bench.run_once() == {"success": 1}
    assert bench.changes[0] == ("PUT", 0, above(3, newer))


@pytest.mark.parametrize("status", [200, 404])
def test_what_the_right_policy_has_as_new_is_not_written_over(make, status):
    bench = make()
    bench.objects[0] = (status, {"x-backend-timestamp": STAMP.internal})
    assert bench.run_once() == {"success": 1}
    assert bench.changes == [("DELETE", 1, above(1))]


def test_a_deletion_is_repeated_in_the_right_policy_even_if_the_wrong_one_forgot_it(make):
    bench = make(entry(is_delete=True))
    bench.objects[1] = (404, {})
    assert bench.run_once() == {"success": 1}
    assert bench.changes == [("DELETE", 0, above(3)), ("DELETE", 1, above(1))]


def test_an_older_object_than_the_entry_s_does_not_move(make):
    """The node that has the newest one may be away."""
    bench = make()
    bench.objects[1] = (200, {"x-backend-timestamp": Timestamp(NOW_S - 2000).internal})
    assert bench.run_once() == {"unavailable_source": 1}
    assert bench.changes == bench.popped == []


@pytest.mark.parametrize("said", [{}, {"x-backend-timestamp": "never"}, {"x-timestamp": "²"}])
def test_an_object_that_does_not_say_when_it_was_written_stays(make, said):
    bench = make()
    bench.objects[1] = (200, said)
    assert bench.run_once() == {"unavailable_source": 1}
    assert bench.changes == bench.popped == []


def test_what_nobody_has_had_for_long_is_given_up(make):
    bench = make(reclaim_age=999)
    bench.objects.clear()
    assert bench.run_once() == {"lost_source": 1}
    assert {index for _, index, _ in bench.changes} == {-1}, "but the container of the queue"
    assert len(bench.popped) == 3
    assert any("removing queue entry" in line for line in bench.log.lines)


def test_where_an_offset_has_no_room_above_it_the_right_copy_is_of_the_next_tick(make):
    last = Timestamp(STAMP, offset=2**64 - 1)
    bench = make(entry(stamp=last))
    bench.objects[1] = (200, {"x-backend-timestamp": last.internal})
    assert bench.run_once() == {"success": 1}
    after = Timestamp.from_raw(STAMP.raw + 1)
    assert bench.changes == [("PUT", 0, above(2, after)), ("DELETE", 1, after.internal)]
    assert len(bench.popped) == 3


def test_the_last_of_all_times_is_an_error_and_not_the_end(make):
    last = Timestamp("9999999999.99999_ffffffffffffffff")
    bench = make(entry(stamp=last), entry())
    bench.objects[1] = (200, {"x-backend-timestamp": last.internal})
    assert bench.run_once() == {"errors": 2}
    assert bench.popped == []
    assert sum("not a timestamp" in line for line in bench.log.lines) == 2


def test_an_entry_of_the_container_s_own_policy_only_goes(make):
    bench = make(entry(0))
    assert bench.run_once() == {"noop_object": 1}
    assert bench.asked == [] and len(bench.popped) == 3


@pytest.mark.parametrize("splitting", [0, 1])
def test_while_partitions_of_either_policy_are_split_nothing_moves(make, splitting):
    bench = make()
    bench.rings.splitting = {splitting}
    assert bench.run_once() == {"unavailable_policy": 1}
    assert bench.asked == bench.popped == []


@pytest.mark.parametrize(("entry_of", "container"), [(7, 0), (1, 7), (1, -1)])
def test_a_policy_that_is_not_known_here_is_left_alone(make, entry_of, container):
    bench = make(entry(entry_of))
    for number in range(3):
        bench.rig.nodes.answers[number] = claim(container)
    assert bench.run_once() == {"unknown_policy": 1}
    assert bench.asked == bench.popped == []


@pytest.mark.parametrize(
    "answers",
    [
        [claim(0), TransportError("away"), TransportError("away")],
        [claim(0), BackendResponse(503), BackendResponse(507)],
        [BackendResponse(404), BackendResponse(404), BackendResponse(404)],
        [claim(0, put=0), BackendResponse(404), BackendResponse(503)],
    ],
)
def test_without_a_majority_that_can_say_the_container_s_policy_nothing_is_done(make, answers):
    bench = make()
    bench.rig.nodes.answers.update(enumerate(answers))
    assert bench.run_once() == {"unavailable_container": 1}
    assert bench.asked == bench.popped == []


def test_where_servers_disagree_the_container_that_was_there_first_is_right(make):
    bench = make(entry(0))
    bench.rig.nodes.answers.update({0: claim(0, put=20.0), 1: claim(1, put=10.0), 2: claim(0, put=20.0)})
    bench.objects = {0: (200, {"x-backend-timestamp": STAMP.internal})}
    assert bench.run_once() == {"success": 1}
    assert bench.changes[0][:2] == ("PUT", 1)


@pytest.mark.parametrize(
    "broken",
    [
        {"x-backend-put-timestamp": "x"},
        {"x-backend-delete-timestamp": ""},
        {"x-backend-status-changed-at": "-5"},
        {"x-backend-storage-policy-index": "²"},
        {"x-backend-storage-policy-index": "9" * 5000},
        {"x-container-object-count": "many"},
        {"x-backend-put-timestamp": "0"},
    ],
)
def test_a_server_that_talks_nonsense_claims_nothing(broken):
    assert claim_of(claim(0)) is not None
    assert claim_of(claim(0, status=404)) is not None
    assert claim_of(claim(0, **broken)) is None
    assert claim_of(claim(0, status=507)) is None
    assert claim_of(BackendResponse(204)) is None


@pytest.mark.parametrize("method", ["HEAD", "GET", "PUT", "DELETE"])
def test_whatever_is_refused_the_entry_stays_for_the_next_pass(make, method):
    bench = make()
    bench.refuses = {method: 503}
    assert bench.run_once() == {"errors": 1}
    assert bench.popped == []
    bench.refuses = {}
    assert bench.run_once() == {"success": 1}


def test_a_queue_that_cannot_be_read_is_read_in_the_next_pass(make):
    bench = make()
    bench.queue.broken = True
    assert bench.run_once() == {"errors": 1}
    bench.queue.broken = False
    assert bench.run_once() == {"success": 1}


def test_a_container_of_the_queue_that_cannot_be_read_does_not_keep_the_others(make):
    bench = make(entry(hour="4999996800"), entry(hour="4999993200"))
    bench.queue.unreadable = {"4999996800"}
    assert bench.run_once() == {"success": 1, "errors": 1}


def test_containers_of_the_queue_go_when_they_are_empty_and_old(make):
    old, older, recent = str(NOW_S - 7200), str(NOW_S - 10800), str(NOW_S - 60)
    bench = make(entry(hour=old), entry(hour=older), entry(hour=recent), reclaim_age=3600)
    bench.queue.left = {older}
    bench.run_once()
    gone = [stamp for method, index, stamp, _ in bench.asked if (method, index) == ("DELETE", -1)]
    assert len(gone) == 1
