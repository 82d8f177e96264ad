"""One object is brought to another cluster: what is asked, what is sent, and what counts as done."""

from __future__ import annotations

import pytest

from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.cluster.outbound import Trust
from swift.cluster.syncrealms import SyncTo
from swift.cluster.transport import BackendResponse
from swift.container.rows import ObjectRow, tombstone
from swift.container.sync.copying import Copier
from swift.container.sync.remote import RemoteError, SyncTarget
from swift.gateway.internal_client import InternalClient
from swift.http.body import BodyError, ResponseBody
from swift.http.response import Response
from swift.runtime.report import Counters
from swift.telemetry.telemetry import Telemetry
from test.support.daemons import LogLines

STAMP = Timestamp(1000).internal
LATER = Timestamp(1001).internal
ROW = ObjectRow("o/ü", STAMP, 4, "t/p", "e", storage_policy_index=1)
GONE = tombstone("o", Timestamp(1000), 1)


class Broken(ResponseBody):
    """A body that ends before its time."""

    length = 10

    def __iter__(self):
        yield b"half"
        raise BodyError("broke off")


class Bench:
    """``here`` is what this cluster answers to GET, ``there`` what the other one does, by method."""

    def __init__(self):
        self.log = LogLines()
        self.telemetry = Telemetry(self.log)
        self.counters = Counters(self.telemetry, "test")
        self.here = lambda: Response(200, {"x-backend-timestamp": STAMP, "x-timestamp": STAMP}, b"body")
        self.there = {
            "HEAD": BackendResponse(404, {}),
            "PUT": BackendResponse(201, {}),
            "DELETE": BackendResponse(204, {}),
        }
        self.asked, self.sent = [], []
        self.client = client = InternalClient(self._handle, "test", tries=1)
        target = SyncTarget(SyncTo("http://far/v1/b/copy"), "key")
        self.copier = Copier(client, self, target, EntityPath("a", "c"), counters=self.counters, log=self.log)

    def _handle(self, request):
        self.asked.append(request)
        return self.here()

    def ask(self, method, target, name, timestamp, headers, body=None, *, query=""):
        """The other cluster."""
        assert target.user_key == "key"
        assert query == ("symlink=get" if method == "HEAD" else "")
        self.sent.append((method, name, timestamp, headers, None if body is None else body.read()))
        answer = self.there[method]
        answer = answer.pop(0) if isinstance(answer, list) else answer
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def methods(self):
        return [method for method, *_ in self.sent]


@pytest.fixture
def bench():
    return Bench()


def test_the_newest_version_of_the_row_s_policy_is_sent_with_its_own_time(bench):
    bench.here = lambda: Response(200, {"x-backend-timestamp": LATER, "x-timestamp": STAMP}, b"body")
    assert bench.copier.copy(ROW)
    (asked,) = bench.asked
    assert (asked.method, asked.raw_path, asked.query) == ("GET", "/v1/a/c/o/%C3%BC", "symlink=get")
    assert (asked.headers["x-newest"], asked.headers["x-backend-storage-policy-index"]) == ("true", "1")
    assert bench.methods == ["HEAD", "PUT"]
    assert (bench.sent[1][1:3], bench.sent[1][4]) == (("o/ü", LATER), b"body")
    assert bench.counters.counts == {"puts": 1}


def test_a_row_that_only_a_newer_release_understands_is_left_alone(bench):
    assert bench.copier.copy(ROW._replace(deleted=2))
    assert bench.asked == bench.sent == []


def test_what_makes_the_object_is_sent_and_what_is_this_cluster_s_stays(bench):
    headers = {
        "x-timestamp": STAMP,
        "etag": '"abc"',
        "content-type": "t/p;swift_bytes=7",
        "x-object-meta-a": "b",
        "x-delete-at": "5000000000",
        "x-object-sysmeta-secret": "s",
        "x-backend-anything": "s",
        "x-trans-id": "tx",
        "last-modified": "then",
    }
    bench.here = lambda: Response(200, dict(headers), b"body")
    assert bench.copier.copy(ROW)
    assert bench.sent[1][3] == {
        "etag": "abc",
        "content-type": "t/p",
        "x-object-meta-a": "b",
        "x-delete-at": "5000000000",
    }


LINK = {
    "x-timestamp": STAMP,
    "content-type": "application/symlink",
    "x-object-sysmeta-symlink-target": "c/x%20y",
    "x-object-sysmeta-symlink-target-account": "b",
    "x-object-sysmeta-symlink-target-etag": "e",
    "x-object-sysmeta-symlink-target-bytes": "7",
}
LINK_ROW = ROW._replace(etag="sealed; meta=which+key", size=0)
MADE = BackendResponse(200, {"x-timestamp": STAMP, "x-symlink-target": "c/x%20y"})
MANGLED = BackendResponse(200, {"x-timestamp": STAMP, "content-length": "0"})


def test_a_link_is_copied_as_a_link(bench):
    bench.here = lambda: Response(200, dict(LINK), b"")
    bench.there["HEAD"] = [BackendResponse(404, {}), MADE]
    assert bench.copier.copy(LINK_ROW)
    assert bench.sent[1][3] == {
        "content-type": "application/symlink",
        "x-symlink-target": "c/x%20y",
        "x-symlink-target-account": "b",
        "x-symlink-target-etag": "e",
        "x-symlink-target-bytes": "7",
    }
    assert bench.methods == ["HEAD", "PUT", "HEAD"]
    assert bench.counters.counts == {"puts": 1}


def test_a_link_that_became_an_empty_object_is_a_failure_in_every_pass(bench):
    bench.here = lambda: Response(200, dict(LINK), b"")
    bench.there["HEAD"] = [BackendResponse(404, {}), MANGLED, MANGLED]
    assert not bench.copier.copy(LINK_ROW)
    assert not bench.copier.copy(LINK_ROW)
    assert bench.methods == ["HEAD", "PUT", "HEAD", "HEAD"]
    assert [asked.method for asked in bench.asked] == ["GET", "HEAD"]
    assert bench.counters.counts == {"failures": 2}
    assert all("symlink filter" in line for line in bench.log.lines)


def test_an_empty_object_with_parameters_is_no_link(bench):
    bench.there["HEAD"] = MANGLED
    assert bench.copier.copy(LINK_ROW)
    assert bench.methods == ["HEAD"] and bench.counters.counts == {}


@pytest.mark.parametrize(
    ("there", "is_done"),
    [
        (MADE, True),
        (BackendResponse(200, {"x-timestamp": LATER}), True),
        (BackendResponse(404, {}), True),
        (BackendResponse(503, {}), False),
    ],
)
def test_what_happens_to_a_copied_link_meanwhile(bench, there, is_done):
    bench.here = lambda: Response(200, dict(LINK), b"")
    bench.there["HEAD"] = [BackendResponse(404, {}), there]
    assert bench.copier.copy(LINK_ROW) is is_done


def test_a_static_link_whose_target_is_missing_is_not_done(bench):
    bench.here = lambda: Response(200, dict(LINK), b"")
    bench.there["PUT"] = BackendResponse(409, {"content-location": "/v1/b/c/x%20y"})
    assert not bench.copier.copy(LINK_ROW)
    assert bench.counters.counts == {"failures": 1}


@pytest.mark.parametrize("there", [STAMP, LATER])
def test_what_is_there_already_or_newer_is_not_read_here(bench, there):
    bench.there["HEAD"] = BackendResponse(200, {"x-timestamp": there})
    assert bench.copier.copy(ROW)
    assert bench.asked == [] and bench.methods == ["HEAD"]


def test_metadata_that_was_changed_after_the_data_is_newer_than_a_copy_of_the_data(bench):
    bench.there["HEAD"] = BackendResponse(200, {"x-timestamp": STAMP})
    row = ROW._replace(created_at=f"{STAMP}+0+186a0")
    bench.here = lambda: Response(200, {"x-timestamp": LATER}, b"body")
    assert bench.copier.copy(row)
    assert bench.methods == ["HEAD", "PUT"]


@pytest.mark.parametrize(
    "said", [{}, {"x-timestamp": ""}, {"x-timestamp": "never"}, {"x-timestamp": "9" * 400}]
)
def test_a_copy_of_no_time_is_written_over(bench, said):
    bench.there["HEAD"] = BackendResponse(200, said)
    assert bench.copier.copy(ROW)
    assert bench.methods == ["HEAD", "PUT"]


@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize("said", [{}, {"x-timestamp": "never"}, {"x-timestamp": Timestamp(999).internal}])
def test_an_older_version_than_the_row_s_is_not_copied_for_it(bench, status, said):
    """The node that has the newest one may be away."""
    bench.here = lambda: Response(status, dict(said), b"body")
    assert not bench.copier.copy(ROW)
    assert bench.methods == ["HEAD"]
    assert bench.counters.counts == {"failures": 1}


def test_what_was_deleted_since_is_done_as_its_deletion_has_a_row_of_its_own(bench):
    bench.here = lambda: Response(404, {"x-backend-timestamp": LATER})
    assert bench.copier.copy(ROW)
    assert bench.methods == ["HEAD"] and bench.counters.counts == {}


def test_a_deletion_has_the_time_of_the_deletion(bench):
    assert bench.copier.copy(GONE)
    assert bench.asked == []
    assert bench.sent == [("DELETE", "o", STAMP, {}, None)]
    assert bench.counters.counts == {"deletes": 1}


@pytest.mark.parametrize(
    ("row", "method", "status"), [(GONE, "DELETE", 404), (GONE, "DELETE", 409), (ROW, "PUT", 409)]
)
def test_what_is_newer_over_there_is_as_good(bench, row, method, status):
    bench.there[method] = BackendResponse(status, {})
    assert bench.copier.copy(row)
    assert bench.counters.counts == {}


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("row", [ROW, LINK_ROW])
def test_a_key_without_a_realm_writes_although_it_may_not_read(bench, row, status):
    if row is LINK_ROW:
        bench.here = lambda: Response(200, dict(LINK), b"")
    bench.there["HEAD"] = BackendResponse(status, {})
    assert bench.copier.copy(row)
    assert bench.counters.counts == {"puts": 1}
    realm = SyncTarget(SyncTo("http://far/v1/b/copy", "R", "k", Trust.OPERATOR), "key")
    bench.copier = Copier(
        bench.client, bench, realm, EntityPath("a", "c"), counters=bench.counters, log=bench.log
    )
    assert not bench.copier.copy(row)


@pytest.mark.parametrize(("row", "method"), [(ROW, "HEAD"), (ROW, "PUT"), (GONE, "DELETE")])
@pytest.mark.parametrize(
    "answer",
    [BackendResponse(400, {}), BackendResponse(301, {}), BackendResponse(503, {}), RemoteError("cut")],
)
def test_a_refusal_is_counted_and_told_once_and_the_row_is_not_done(bench, row, method, answer):
    bench.there[method] = answer
    assert not bench.copier.copy(row)
    assert bench.counters.counts == {"failures": 1}
    (line,) = bench.log.lines
    assert line.startswith(f"ERROR ERROR cannot copy /a/c/{row.name}") and "key" not in line


def test_an_object_that_cannot_be_read_here_is_a_failure_however_far_it_came(bench):
    bench.here = lambda: Response(503)
    assert not bench.copier.copy(ROW)
    bench.here = lambda: Response(200, {"x-timestamp": STAMP}, Broken())
    assert not bench.copier.copy(ROW)
    assert bench.counters.counts == {"failures": 2}
