"""Clients that race for multipart uploads over a ``MemoryStore``, and what must be true afterwards."""

import contextlib
import itertools
import json
import random
from types import SimpleNamespace

from swift import green
from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.gateway.internal_client import InternalClient, UnexpectedAnswer
from swift.policy.policies import Policies
from swift.policy.policy import Policy
from swift.s3.api.uploads import DECISION_S
from swift.s3.daemons.expiration import ENDED, CompletionRecovery, Expiration
from swift.s3.daemons.orphans import OrphanCleanup
from swift.s3.daemons.walk import RegisteredBucket, UploadCandidates, Walk
from test.support.memorystore import Crash, MemoryStore
from test.support.s3world import S3World, etag_of

ACCOUNT = "AUTH_test"
BUCKET = EntityPath(ACCOUNT, "bucket")
FAULTS = ("refused", "lost", "crash before", "crash after")
#: Statuses that say yes or no; of all others a client does not know what was done.
CERTAIN = (200, 201, 204, 400, 404, 409, 412)


class NoCache:
    """A ``swift.cache`` that forgets at once."""

    def get(self, key, default=None, *, raise_on_error=False):
        return default

    def set(self, key, value, *, ttl_s=0, raise_on_error=False):
        return None

    delete = set


class Done(SimpleNamespace):
    """An operation: its kind, what it was about, and between which ticks it was done."""

    @property
    def is_done(self):
        """Return True if its client was told so."""
        return self.status in (200, 204)

    def __repr__(self):
        return f"{self.kind} {self.about} {self.status} [{self.called}, {self.returned}]"


class Race:
    """One history: a bucket, uploads to one key, and clients that do things to them at the same time."""

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
        self.s3 = S3World(sim)
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
        """The answer to a signed request, None of a process that died."""
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
        """Do something with faults, and note it."""
        called = next(self.ticks)
        answer = self.call(method, target, body, headers, faults=True)
        status = 0 if answer is None else answer.status
        if answer is not None and b"<Error>" in answer.body and status == 200:
            status = 500
        noted = Done(kind=kind, about=about, status=status, called=called, returned=next(self.ticks), **more)
        self.history.append(noted)
        return noted

    def begin(self):
        """Begin an upload and send its first parts, without faults."""
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
        """Some operations, one after another."""
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
        """A client with all rights, whose process may die."""
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
            outcome = ending.uploads(UploadCandidates(entry, [("key", upload_id)]))
            status = 204 if outcome == ENDED else 404
        except (Crash, UnexpectedAnswer):
            pass
        self.history.append(
            Done(kind="abort", about=upload_id, status=status, called=called, returned=next(self.ticks))
        )

    def finish_as_daemon(self, called):
        entry = RegisteredBucket(ACCOUNT, "bucket", Timestamp(0))
        finishing = CompletionRecovery(self.daemon(faults=True), _now_s, 3, -1.0)
        try:
            for unit in finishing.find(entry):
                finishing.finish(unit)
        except (Crash, UnexpectedAnswer):
            return

    def settle(self):
        """Run passes of the daemon once everything is well and old."""
        self.store.chance = None
        self.store.faults.clear()
        entry = RegisteredBucket(ACCOUNT, "bucket", Timestamp(0))
        for later_s in (0.0, DECISION_S + 1):
            client = self.daemon(faults=False)
            finishing = CompletionRecovery(client, lambda: _now_s() + later_s, 3, -1.0)  # noqa: B023
            leftovers = OrphanCleanup(client, _now_s, 3, -60.0)
            homes = leftovers.containers(entry)
            for unit in list(finishing.find(entry)):
                # A bucket whose deletion broke off may take no objects until its decisions are too old.
                with contextlib.suppress(UnexpectedAnswer):
                    finishing.finish(unit)
            if not client.exists(BUCKET):
                ending = Expiration(client, _now_s, lambda _s: None, 0.0)
                for unit in list(Walk(client, entry, [], 2e9, 3).uploads_before(2e9)):
                    ending.uploads(unit)
            for unit in list(leftovers.find(entry, homes)):
                leftovers.end(unit)
            if not client.exists(BUCKET):
                for home in homes:
                    client.delete(home, accept=(2, 404, 409))

    def run(self):
        """The whole history."""
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


def _now_s():
    return Timestamp.now().seconds


def _over(s3, front):
    """The same world with another first filter."""
    other = object.__new__(type(s3))
    other.__dict__.update(s3.__dict__, filter=front)
    return other
