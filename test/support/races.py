"""Concurrent clients of multipart uploads over a cluster in memory, and a linearizability check."""

import contextlib
import itertools
import json
import math
import random
import time
from base64 import b64encode
from hashlib import md5
from types import SimpleNamespace
from typing import NamedTuple

from swift import green
from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.cluster.expiry import parse_task
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.http import fields
from swift.http.response import Response, error_response
from swift.policy.policy import Policies, Policy
from swift.s3.core.metadata import metadata_for_post
from swift.s3.core.uploadstate import DECISION_VALID_S
from swift.s3.daemons.expiration import ENDED, CompletionRecovery, Expiration
from swift.s3.daemons.orphans import OrphanCleanup
from swift.s3.daemons.walk import BucketWalk, RegisteredBucket, UploadCandidates
from test.support.s3_fixtures import S3Cluster, etag_of

# --- memorystore ------------------------------------------------------------------------------------

# A cluster as filters see it, in memory: one decision after another, with faults between any two of them.
#
# Objects have the conditions of decision 0011, timestamps and tombstones; containers list at once. A
# container that was deleted is there again while it has rows, as replication may bring it back. Each
# request first lets others run, as often as ``chance`` says, and may then fail in three ways: nothing was
# done, the answer is lost, or the process that asked has died (``Crash``).


_STORED = ("content-type", "x-object-meta-", "x-object-sysmeta-", "x-object-transient-sysmeta-")
_CONTAINER = ("x-container-", "x-versions-")


#: Turns that others run first: mostly few, sometimes as many as whole operations take.
_PAUSES = (0, 0, 0, 1, 1, 1, 2, 2, 5, 5, 15, 150)


class Crash(Exception):
    """The requesting process was killed."""


class Stored:
    """One state of an object; a tombstone has no body."""

    def __init__(self, at, body=None, headers=()):
        self.at = at
        self.body = body
        self.headers = dict(headers)


class MemoryStore:
    """The application at the end of a pipeline, in memory."""

    def __init__(self, chance=None):
        self.chance = chance
        #: (account, container) → headers; the same with an object → its newest state.
        self.containers = {}
        self.deleted = set()
        self.objects = {}
        #: Requests of this name (the transaction's) → requests until a fault → which.
        self.faults = {}
        self.crashed = set()
        self._last = Timestamp(0)

    # faults

    def _travel(self):
        if self.chance is not None:
            for _ in range(self.chance.choice(_PAUSES)):
                green.sleep(0)

    def _fault(self, name):
        if name in self.crashed:
            raise Crash
        left = self.faults.get(name)
        if left is None:
            return ""
        left[0] -= 1
        return left[1] if left[0] == 0 else ""

    def handle(self, request):
        """See ``Filter``."""
        name = request.env.get("swift.trans_id", "")
        entity = request.entity
        path = entity.path if entity is not None else None
        container_was = path is not None and self._exists(path)
        body = request.body.read() if request.method in ("PUT", "UPDATE") else b""
        self._travel()
        fault = self._fault(name)
        if fault == "refused":
            return error_response(503)
        if fault == "crash before":
            self.crashed.add(name)
            raise Crash
        self._body = body
        response = self._answer(request, path, body, container_was)
        if fault == "crash after":
            self.crashed.add(name)
            raise Crash
        self._travel()
        return error_response(503) if fault == "lost" else response

    # answers

    def _answer(self, request, path, body, container_was):
        if path is None:
            return error_response(404)
        if path.container is None:
            return self._account(request, path)
        if path.obj is None:
            return getattr(self, f"_container_{request.method.lower()}")(request, path)
        if not container_was:
            return error_response(404)
        return getattr(self, f"_object_{request.method.lower()}")(request, path, body)

    def _account(self, request, path):
        start = request.params.get("prefix", "")
        names = sorted({c for a, c in self.containers if a == path.account and c.startswith(start)})
        found = [{"name": name} for name in names if self._exists(path._replace(container=name))]
        found = [row for row in found if row["name"] > request.params.get("marker", "")]
        return Response(200, {"content-type": "application/json"}, json.dumps(found).encode())

    def _rows(self, path):
        return sorted(
            (p.obj, stored)
            for p, stored in self.objects.items()
            if p[:2] == path[:2] and stored.body is not None
        )

    def _exists(self, path):
        key = (path.account, path.container)
        return key in self.containers and (key not in self.deleted or bool(self._rows(path)))

    def _container_put(self, request, path):
        key = (path.account, path.container)
        existed = self._exists(path)
        if key in self.deleted:
            self.deleted.discard(key)
            self.containers.pop(key)
        stored = self.containers.setdefault(key, {})
        stored.update({n: v for n, v in request.headers.items() if n.startswith(_CONTAINER)})
        return error_response(202 if existed else 201)

    def _container_post(self, request, path):
        if not self._exists(path):
            return error_response(404)
        stored = self.containers[path.account, path.container]
        stored.update({n: v for n, v in request.headers.items() if n.startswith(_CONTAINER)})
        return error_response(204)

    def _container_update(self, request, _path):
        """Handle an update of the expirer's queue: run each task at once."""
        for row in json.loads(self._body):
            stamp, target = parse_task(row["name"])
            found = self.objects.get(target)
            if found is not None and found.body is not None and found.at <= stamp:
                self.objects[target] = Stored(stamp)
        return error_response(202)

    def _container_delete(self, request, path):
        if not self._exists(path):
            return error_response(404)
        if self._rows(path):
            return error_response(409)
        self.deleted.add((path.account, path.container))
        return error_response(204)

    def _container_head(self, request, path):
        if not self._exists(path):
            return error_response(404)
        headers = {
            **self.containers[path.account, path.container],
            "x-container-object-count": str(len(self._rows(path))),
            "x-container-bytes-used": "0",
            "x-backend-storage-policy-index": "0",
            "x-storage-policy": "gold",
        }
        return Response(204, headers)

    def _container_get(self, request, path):
        head = self._container_head(request, path)
        if head.status == 404:
            return head
        marker, start = request.params.get("marker", ""), request.params.get("prefix", "")
        rows = [row for row in self._rows(path) if row[0] > marker and row[0].startswith(start)]
        page = [self._row(name, stored) for name, stored in rows[: int(request.params.get("limit", 1000))]]
        headers = {**head.headers, "content-type": "application/json; charset=utf-8"}
        return Response(200, headers, json.dumps(page).encode())

    def _row(self, name, stored):
        override = stored.headers.get(fields.SYSMETA_UPDATE_OVERRIDE_ETAG)
        return {
            "name": name,
            "bytes": len(stored.body),
            "hash": override or md5(stored.body).hexdigest(),
            "content_type": stored.headers.get("content-type", ""),
            "last_modified": stored.at.isoformat,
        }

    # objects

    def _stamp(self, request):
        given = request.headers.get("x-timestamp")
        now = Timestamp(time.time())
        stamp = Timestamp(given) if given else max(now, self._last.above(1))
        self._last = max(self._last, stamp)
        return stamp

    def _refused(self, request, path):
        """Return the status of a change whose conditions fail, else 0."""
        found = self.objects.get(path)
        exists = found is not None and found.body is not None
        wanted = request.headers.get(fields.BACKEND_IF_PREDECESSOR)
        if request.headers.get("if-none-match") == "*" and exists:
            return 412
        if wanted is not None or "if-match" in request.headers:
            if not exists:
                return 404
            if wanted is not None and Timestamp(wanted) != found.at:
                return 412
        return 0

    def _object_put(self, request, path, body):
        status = self._refused(request, path)
        if status:
            return error_response(status)
        stamp, found = self._stamp(request), self.objects.get(path)
        if found is not None and found.at >= stamp:
            return error_response(202)
        headers = {n: v for n, v in request.headers.items() if n.startswith(_STORED) or n == "x-delete-at"}
        headers |= metadata_for_post(request.headers)
        headers |= {"x-static-large-object": "True"} if "x-static-large-object" in request.headers else {}
        self.objects[path] = Stored(stamp, body, headers)
        return Response(201, {"etag": md5(body).hexdigest(), "last-modified": stamp.http_date})

    def _object_delete(self, request, path, _body):
        status, found = self._refused(request, path), self.objects.get(path)
        if status:
            return error_response(status)
        stamp = self._stamp(request)
        if found is not None and found.at >= stamp:
            return error_response(409)
        self.objects[path] = Stored(stamp)
        return error_response(204 if found is not None and found.body is not None else 404)

    def _object_head(self, request, path, _body):
        found = self.objects.get(path)
        stamp = {} if found is None else {fields.BACKEND_TIMESTAMP: found.at.internal}
        if found is None or found.body is None:
            return error_response(404, headers=stamp)
        headers = {
            **found.headers,
            **stamp,
            fields.BACKEND_DATA_TIMESTAMP: found.at.internal,
            "x-timestamp": found.at.normal,
            "last-modified": found.at.http_date,
            "etag": f'"{md5(found.body).hexdigest()}"',
            "content-length": str(len(found.body)),
        }
        return Response(200, headers)

    def _object_get(self, request, path, body):
        head = self._object_head(request, path, body)
        return Response(200, head.headers, self.objects[path].body) if head.status == 200 else head


# --- linearizable -----------------------------------------------------------------------------------

# Is there an order of compare-and-set operations that explains what every client was told?
#
# The search of Wing and Gong (1993) with the memory of Lowe (2017) over one register: an operation takes
# effect at one moment between its call and its return. One whose outcome is unknown may do so at any time
# after its call, or never.


class Op(NamedTuple):
    """A compare-and-set of a register from ``expected`` (None: empty); ``ok`` None: unknown outcome."""

    expected: object
    new: object
    called: float
    returned: float
    ok: bool | None


def explains(history, initial=None):
    """Return True if some order explains the history."""
    ops = tuple(sorted(history, key=lambda op: op.called))
    ends = [math.inf if op.ok is None else op.returned for op in ops]
    seen = set()
    stack = [(frozenset(range(len(ops))), initial)]
    while stack:
        left, value = stack.pop()
        if all(ops[i].ok is None for i in left):
            return True
        if (left, value) in seen:
            continue
        seen.add((left, value))
        # Whoever was called after another returned cannot come first.
        horizon = min(ends[i] for i in left)
        for i in left:
            op = ops[i]
            if op.called > horizon:
                continue
            holds = value == op.expected
            if holds if op.ok is None else op.ok == holds:
                stack.append((left - {i}, op.new if holds else value))
    return False


# --- ledger -----------------------------------------------------------------------------------------

# What a store may answer after faults: acknowledged requests count, unacknowledged ones may or may not.
#
# A ledger belongs to names that only one thread changes. It refuses to know how requests are sent.


class Entry:
    """One object: its possible bodies and colours (a header set by POST and PUT)."""

    def __init__(self):
        self.bodies = {None}
        self.colours = {None}
        self.ever = {None}

    def put(self, body, colour, acknowledged):
        """Record a PUT of ``body`` and ``colour``; later reads must see it if it was acknowledged."""
        self.ever.add(body)
        self.bodies = {body} if acknowledged else self.bodies | {body}
        self.colours = {colour} if acknowledged else self.colours | {colour}

    def post(self, colour, acknowledged):
        """Record a POST of ``colour``."""
        self.colours = {colour} if acknowledged else self.colours | {colour}

    def delete(self, acknowledged):
        """Record a DELETE."""
        self.bodies = {None} if acknowledged else self.bodies | {None}


class Ledger:
    """The entries of one thread's names."""

    def __init__(self):
        self.entries = {}

    def __getitem__(self, name):
        return self.entries.setdefault(name, Entry())

    def check(self, name, answer):
        """Report ``answer`` to a GET with X-Newest unless the entry allows it."""
        entry = self[name]
        if answer.status == 404:
            assert None in entry.bodies, f"{name}: an acknowledged object is lost"
            return
        assert answer.status == 200, (name, answer)
        assert answer.headers["etag"] == md5(answer.body).hexdigest(), f"{name}: the body is not its ETag's"
        assert answer.body in entry.bodies, f"{name}: not what was acknowledged last: {answer.body[:60]!r}"
        colour = answer.headers.get("x-object-meta-colour")
        assert colour in entry.colours, f"{name}: colour {colour}, expected one of {entry.colours}"

    def check_loosely(self, name, answer):
        """Report a GET during faults unless it returns some complete version that was written."""
        if answer is None or answer.status not in (200, 404):
            return
        body = answer.body if answer.status == 200 else None
        assert body in self[name].ever, f"{name}: never written: {answer}"
        if body is not None:
            assert answer.headers["etag"] == md5(body).hexdigest(), name


# --- uploadraces ------------------------------------------------------------------------------------

# Clients that race for multipart uploads over a ``MemoryStore``, and what must be true afterwards.


ACCOUNT = "AUTH_test"
BUCKET = EntityPath(ACCOUNT, "bucket")
FAULTS = ("refused", "lost", "crash before", "crash after")
#: Statuses that say yes or no; of all others a client does not know what was done.
CERTAIN = (200, 201, 204, 400, 404, 409, 412)


class NoCache:
    """A ``swift.cache`` that stores nothing."""

    def get(self, key, default=None, *, raise_on_error=False):
        return default

    def set(self, key, value, *, ttl_s=0, raise_on_error=False):
        return None

    delete = set


class Done(SimpleNamespace):
    """An operation: its kind, its subject, and its first and last tick."""

    @property
    def is_done(self):
        """Return True if the client got a success response."""
        return self.status in (200, 204)

    def __repr__(self):
        return f"{self.kind} {self.about} {self.status} [{self.called}, {self.returned}]"


class Race:
    """One history: a bucket, uploads to one key, and concurrent clients."""

    def __init__(self, seed):
        self.seed = seed
        self.chance = random.Random(seed)
        self.store = MemoryStore()
        sim = SimpleNamespace(
            app=self.store,
            policies=Policies([Policy(0, "gold", is_default=True)]),
            hasher=PathHasher(b"", b"sim"),
            cache=NoCache(),
        )
        self.s3 = S3Cluster(sim)
        self.names = (f"op{n}" for n in itertools.count())
        self.ticks = itertools.count()
        self.history = []
        #: Upload → number → contents that were sent as this part.
        self.parts = {}
        self.has_versions = self.chance.random() < 0.3
        assert self.call("PUT", "/bucket").status == 200
        if self.has_versions:
            document = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
            assert self.call("PUT", "/bucket?versioning", document.encode()).status == 200

    # requests

    def call(self, method, target, body=b"", headers=None, *, faults=False):
        """Return the response to a signed request; None if the process died."""
        name = next(self.names)
        if faults and self.chance.random() < 0.25:
            self.store.faults[name] = [self.chance.randrange(1, 12), self.chance.choice(FAULTS)]

        def handle(request):
            request.env["swift.trans_id"] = name
            return self.s3.filter.handle(request)

        try:
            return _over(self.s3, SimpleNamespace(handle=handle))(method, target, headers, body)
        except Crash:
            return None

    def done(self, kind, about, method, target, body=b"", headers=None, **more):
        """Send a request with faults, and record the operation."""
        called = next(self.ticks)
        answer = self.call(method, target, body, headers, faults=True)
        status = 0 if answer is None else answer.status
        if answer is not None and b"<Error>" in answer.body and status == 200:
            status = 500
        noted = Done(kind=kind, about=about, status=status, called=called, returned=next(self.ticks), **more)
        self.history.append(noted)
        return noted

    def begin(self):
        """Start an upload and send its first parts, without faults."""
        answer = self.call("POST", "/bucket/key?uploads")
        [upload_id] = answer.texts("UploadId")
        self.parts[upload_id] = {}
        for number in range(1, self.chance.randrange(2, 4)):
            content = f"{upload_id[:8]}/{number}/first".encode()
            answer = self.call("PUT", f"/bucket/key?partNumber={number}&uploadId={upload_id}", content)
            assert answer.status == 200, answer
            self.parts[upload_id][number] = [content]

    # what clients do

    def client(self):
        """Run some operations, one after another."""
        kinds = (
            *(self.part, self.part, self.part, self.complete, self.complete, self.complete),
            *(self.abort, self.abort_by_rule, self.other),
        )
        for _ in range(self.chance.randrange(1, 5)):
            self.chance.choice(kinds)(self.chance.choice(list(self.parts)))

    def part(self, upload_id):
        number = self.chance.randrange(1, 4)
        content = f"{upload_id[:8]}/{number}/{self.chance.randrange(3)}".encode()
        sent = self.parts[upload_id].setdefault(number, [])
        target = f"/bucket/key?partNumber={number}&uploadId={upload_id}"
        # A client that knows what it sent may complete with a part whose answer was lost.
        sent.append(content)
        if self.chance.random() < 0.2:
            self.call("PUT", "/bucket/source", content)
            headers = {"x-amz-copy-source": "/bucket/source"}
            self.done("part", (upload_id, number), "PUT", target, b"", headers)
        else:
            self.done("part", (upload_id, number), "PUT", target, content)

    def complete(self, upload_id):
        sent = self.parts[upload_id]
        numbers = sorted(n for n in sent if self.chance.random() < 0.9) or [min(sent)]
        named = [(number, self.chance.choice(sent[number])) for number in numbers]
        items = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{etag_of(content)}</ETag></Part>"
            for number, content in named
        )
        document = f"<CompleteMultipartUpload>{items}</CompleteMultipartUpload>".encode()
        headers = {"if-none-match": "*"} if self.chance.random() < 0.2 else {}
        content = b"".join(content for _, content in named)
        target = f"/bucket/key?uploadId={upload_id}"
        for _ in range(self.chance.choice((1, 1, 2))):
            self.done("complete", upload_id, "POST", target, document, headers, content=content)

    def abort(self, upload_id):
        self.done("abort", upload_id, "DELETE", f"/bucket/key?uploadId={upload_id}")

    def other(self, _upload_id):
        draw = self.chance.random()
        if draw < 0.3:
            content = f"plain {self.chance.randrange(100)}".encode()
            self.done("put", "key", "PUT", "/bucket/key", content, content=content)
        elif draw < 0.6:
            self.done("delete", "key", "DELETE", "/bucket/key")
        elif draw < 0.8:
            self.done("delete bucket", "bucket", "DELETE", "/bucket")
        else:
            self.finish_as_daemon(next(self.ticks))

    # the daemon

    def daemon(self, *, faults):
        """Return the client of a daemon: it has all rights, and its process may die."""
        name = next(self.names)
        if faults and self.chance.random() < 0.25:
            self.store.faults[name] = [self.chance.randrange(1, 12), self.chance.choice(FAULTS)]

        def forward(request):
            request.env["swift.trans_id"] = name
            return self.s3.slo.handle(request)

        return InternalClient(forward, "test", tries=1)

    def abort_by_rule(self, upload_id):
        called, status = next(self.ticks), 0
        entry = RegisteredBucket(ACCOUNT, "bucket", Timestamp(0))
        ending = Expiration(self.daemon(faults=True), lambda: 2e9, lambda _s: None, 0.0)
        try:
            outcome = ending.abort_uploads(UploadCandidates(entry, [("key", upload_id)]))
            status = 204 if outcome == ENDED else 404
        except (Crash, UnexpectedResponse):
            pass
        self.history.append(
            Done(kind="abort", about=upload_id, status=status, called=called, returned=next(self.ticks))
        )

    def finish_as_daemon(self, called):
        entry = RegisteredBucket(ACCOUNT, "bucket", Timestamp(0))
        finishing = CompletionRecovery(self.daemon(faults=True), _now_s, 3, -1.0)
        try:
            for unit in finishing.find_unfinished(entry):
                finishing.finish_upload(unit)
        except (Crash, UnexpectedResponse):
            return

    def settle(self):
        """Run passes of the daemon after all faults, when all uploads are old."""
        self.store.chance = None
        self.store.faults.clear()
        entry = RegisteredBucket(ACCOUNT, "bucket", Timestamp(0))
        for later_s in (0.0, DECISION_VALID_S + 1):
            client = self.daemon(faults=False)
            finishing = CompletionRecovery(client, lambda: _now_s() + later_s, 3, -1.0)  # noqa: B023
            leftovers = OrphanCleanup(client, _now_s, 3, -60.0)
            homes = leftovers.list_segments_containers(entry)
            for unit in list(finishing.find_unfinished(entry)):
                # A bucket whose deletion broke off may take no objects until its decisions are too old.
                with contextlib.suppress(UnexpectedResponse):
                    finishing.finish_upload(unit)
            if not client.exists(BUCKET):
                ending = Expiration(client, _now_s, lambda _s: None, 0.0)
                for unit in list(BucketWalk(client, entry, [], 2e9, 3).upload_candidates_before(2e9)):
                    ending.abort_uploads(unit)
            for unit in list(leftovers.find_candidates(entry, homes)):
                leftovers.remove_orphan(unit)
            if not client.exists(BUCKET):
                for home in homes:
                    client.delete(home, accept=(2, 404, 409))

    def run(self):
        """Run the whole history."""
        for _ in range(self.chance.choice((1, 1, 2))):
            self.begin()
        self.store.chance = self.chance
        green.gather([self.client] * self.chance.randrange(2, 5))
        self.settle()

    # what must be true

    def faults_found(self):
        """Return the violated invariants, in words."""
        yield from self._winners()
        yield from self._contents()
        yield from self._left()

    def _winners(self):
        for upload_id in self.parts:
            ended = [op for op in self.history if op.about == upload_id and op.status in (200, 204)]
            completed = {op.content for op in ended if op.kind == "complete"}
            aborted = [op for op in ended if op.kind == "abort"]
            if len(completed) > 1 or (completed and aborted) or len(aborted) > 1:
                yield f"several winners: {ended}"

    def _writes(self):
        kinds = ("complete", "put", "delete", "delete bucket")
        return [op for op in self.history if op.kind in kinds]

    def _contents(self):
        answer = self.call("GET", "/bucket/key")
        contents = {op.content for op in self._writes() if op.kind in ("complete", "put")}
        if answer.status == 200 and answer.body not in contents:
            yield f"the object holds what was never stored: {answer.body!r}"
        if answer.status not in (200, 404):
            yield f"the object cannot be read: {answer}"
        for op in self._writes():
            if op.kind != "complete" or op.status != 200:
                continue
            later = [other for other in self._writes() if other is not op and self._may_follow(other, op)]
            if not later and answer.body != op.content:
                yield f"{op} is not what the object holds: {answer.status} {answer.body!r}"
        for op in self._writes():
            writes = [other for other in self._writes() if "delete" not in other.kind]
            may_be_there = op.kind != "delete" or any(self._may_follow(other, op) for other in writes)
            if op.is_done and answer.status == 200 and not may_be_there:
                yield f"the object came back after {op}"
        if self.has_versions:
            yield from self._versions(contents)

    def _may_follow(self, other, op):
        """Return True if an operation may have been done after another began, its first try if repeated."""
        if other.kind == "complete" and other.about == op.about:
            return False
        tries = [o for o in self.history if o.kind == op.kind == "complete" and o.about == op.about]
        called = min(o.called for o in [*tries, op])
        return other.returned > called and (other.is_done or other.status not in CERTAIN)

    def _versions(self, contents):
        answer = self.call("GET", "/bucket?versions")
        if answer.status != 200:
            return
        for version in answer.tree.iter("Version"):
            name, version_id = version.find("Key").text, version.find("VersionId").text
            if name != "key":
                continue
            read = self.call("GET", f"/bucket/key?versionId={version_id}")
            if read.status != 200 or read.body not in contents:
                yield f"version {version_id} cannot be read: {read}"

    def _left(self):
        names = {path: stored for path, stored in self.store.objects.items() if stored.body is not None}
        manifests = [
            json.loads(stored.body) for stored in names.values() if "x-static-large-object" in stored.headers
        ]
        needed = {entry["name"].lstrip("/") for manifest in manifests for entry in manifest}
        is_there = self.call("HEAD", "/bucket").status == 200
        rows = self.daemon(faults=False).containers(ACCOUNT, prefix="bucket+")
        if not is_there and (containers := [row["name"] for row in rows]):
            yield f"the bucket is gone, but not {containers}: {sorted(p.obj for p in names)}"
        ended = {op.about for op in self.history if op.kind in ("complete", "abort") and op.is_done}
        for path in names:
            if not str(path.container).startswith("bucket+"):
                continue
            upload_id = path.obj.split("/")[1]
            is_marker = path.obj.count("/") == 1
            marker = path._replace(obj=f"key/{upload_id}")
            if is_marker and upload_id in ended:
                yield f"the marker {path.obj} stays"
            if not is_marker and marker not in names and f"{path.container}/{path.obj}" not in needed:
                yield f"the part {path.obj} stays"


# --- versionraces -----------------------------------------------------------------------------------

# Clients that race for the versions of objects over a ``MemoryStore``, and what must be true afterwards.


class VersionRace:
    """One history: a bucket with versions of few keys, and concurrent clients."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.has_faults = False
        self.store = MemoryStore()
        sim = SimpleNamespace(
            app=self.store,
            policies=Policies([Policy(0, "gold", is_default=True)]),
            hasher=PathHasher(b"", b"sim"),
            cache=NoCache(),
        )
        self.s3 = S3Cluster(sim)
        self.names = (f"op{n}" for n in itertools.count())
        self.bodies = (f"body {n}".encode() for n in itertools.count())
        self.history = []
        #: (key, version id) → body, or None for a delete marker; of what clients know.
        self.versions = {}
        #: Versions whose deletion was requested.
        self.deleted = set()
        self.wrong = []
        self.keys = ["key", "other"][: self.chance.choice((1, 1, 2))]
        assert self.call("PUT", "/bucket").status == 200
        for key in self.keys:
            if self.chance.random() < 0.3:
                self.versions[key, "null"] = next(self.bodies)
                assert self.call("PUT", f"/bucket/{key}", self.versions[key, "null"]).status == 200
        self.s3.versioning("bucket", "Enabled")

    def call(self, method, target, body=b"", headers=None):
        """Return the response to a signed request; repeat it as clients do while its outcome is unknown."""
        while True:
            name = next(self.names)
            if self.has_faults and self.chance.random() < 0.25:
                self.store.faults[name] = [self.chance.randrange(1, 12), self.chance.choice(FAULTS)]

            def handle(request, name=name):
                request.env["swift.trans_id"] = name
                return self.s3.filter.handle(request)

            try:
                answer = _over(self.s3, SimpleNamespace(handle=handle))(method, target, headers, body)
            except Crash:
                self.history.append((method, target, "crash"))
                continue
            self.history.append((method, target, answer.status, answer.headers.get("x-amz-version-id")))
            if not self.has_faults or (answer.status < 500 and b"ServiceUnavailable" not in answer.body):
                return answer

    def expect(self, answer, *statuses):
        """Note an answer that no client may get."""
        if answer.status not in statuses:
            self.wrong.append(f"{answer}")

    # what clients do

    def put(self, key):
        """Upload an object; a repeated upload may leave versions that no client knows."""
        body = next(self.bodies)
        answer = self.call("PUT", f"/bucket/{key}", body)
        self.expect(answer, 200)
        self.versions[key, answer.headers["x-amz-version-id"]] = body

    def delete(self, key):
        answer = self.call("DELETE", f"/bucket/{key}")
        self.expect(answer, 204)
        self.versions[key, answer.headers["x-amz-version-id"]] = None

    def delete_version(self, key):
        known = [version for name, version in self.versions if name == key]
        if known:
            version = self.chance.choice(known)
            self.deleted.add((key, version))
            self.expect(self.call("DELETE", f"/bucket/{key}?versionId={version}"), 204)

    def delete_versions(self, _key):
        """Delete many versions with one request, mostly the newest first."""
        known = sorted(self.versions, reverse=True)
        if self.chance.random() < 0.3:
            self.chance.shuffle(known)
        self.delete_all([version for version in known if self.chance.random() < 0.8])

    def delete_all(self, found):
        """Delete versions with one request."""
        if not found:
            return
        self.deleted.update(found)
        items = "".join(f"<Object><Key>{k}</Key><VersionId>{v}</VersionId></Object>" for k, v in found)
        body = f"<Delete>{items}</Delete>".encode()
        headers = {"content-md5": b64encode(md5(body).digest()).decode()}
        answer = self.call("POST", "/bucket?delete", body, headers)
        self.expect(answer, 200)
        if answer.status == 200 and len(answer.texts("Deleted")) != len(found):
            self.wrong.append(f"deletions fail: {answer.body}")

    def listed(self):
        """Return the listed versions: (key, version id), the newest of each key first."""
        rows = [row for row in self.call("GET", "/bucket?versions").tree if row.find("VersionId") is not None]
        return [(row.find("Key").text, row.find("VersionId").text) for row in rows]

    def empty(self, _key):
        self.delete_all(self.listed())

    def client(self):
        """Run some operations, one after another."""
        kinds = (self.put, self.delete, *[self.delete_version] * 3, *[self.delete_versions] * 2, self.empty)
        for _ in range(self.chance.randrange(1, 4)):
            self.chance.choice(kinds)(self.chance.choice(self.keys))

    def run(self):
        """Run the whole history; return the violated invariants, in words."""
        for key in self.keys:
            for _ in range(self.chance.randrange(1, 5)):
                self.chance.choice((self.put, self.put, self.put, self.delete))(key)
        has_faults = self.has_faults = self.chance.random() < 0.4
        self.store.chance = self.chance
        green.gather([self.client] * self.chance.randrange(2, 5))
        self.store.chance, self.has_faults = None, False
        yield from self.wrong
        yield from self._remaining(knows_all=not has_faults)
        yield from self._emptied()

    # what must be true

    def _remaining(self, *, knows_all):
        listed = self.listed()
        for (key, version), body in self.versions.items():
            read = self.call("GET", f"/bucket/{key}?versionId={version}")
            if (key, version) not in self.deleted:
                if (read.body if read.status == 200 else None) != body or (key, version) not in listed:
                    yield f"version {version} of {key} is lost: {read}"
            elif read.status != 404 or (key, version) in listed:
                yield f"version {version} of {key} was deleted: {read}"
        names = self.call("GET", "/bucket").texts("Key")
        for key in self.keys:
            answer = self.call("GET", f"/bucket/{key}")
            if (answer.status == 200) != (key in names):
                yield f"{key} is {'' if key in names else 'not '}listed: {answer}"
            newest = next((version for name, version in listed if name == key), None)
            body = self.versions.get((key, newest))
            if knows_all and (answer.body if answer.status == 200 else None) != body:
                yield f"the newest version of {key} is {newest}, {body}: {answer}"

    def _emptied(self):
        self.delete_all(self.listed())
        if self.listed():
            yield f"versions stay: {self.listed()}"
        answer = self.call("DELETE", "/bucket")
        if answer.status != 204:
            yield f"the bucket is not empty: {answer} {self.store.objects}"


def _now_s():
    return Timestamp.now().seconds


def _over(s3, front):
    """Return the same fixture with another first filter."""
    other = object.__new__(type(s3))
    other.__dict__.update(s3.__dict__, filter=front)
    return other
