"""Fixtures of identities: a pipeline in memory that keeps records and objects, and what is made over it."""

import json
from hashlib import md5
from types import SimpleNamespace

from swift.gateway.documents import document_client
from swift.http.response import Response
from swift.identity.clusterkeys import ClusterKey, ClusterKeys
from swift.identity.directory import Directory
from swift.identity.operations import IdentityOperations
from swift.identity.passwords import Passwords
from swift.identity.store import AGENT, RecordCache, RecordStore

KEYS = ClusterKeys((ClusterKey("1", b"k" * 32),))
OTHER_KEYS = ClusterKeys((ClusterKey("1", b"o" * 32),))
PREFIX = "AUTH_"


class MemoryPipeline:
    """The rest of a pipeline: accounts, containers and objects with conditional writes, in memory."""

    def __init__(self):
        self.containers = {}
        #: (account, container) → headers of the container.
        self.metadata = {}
        self.is_down = False
        self.requests = []
        #: Called before each request; may change what is stored.
        self.before = lambda _request: None

    def handle(self, request):
        self.before(request)
        self.requests.append(request)
        account, container, name = request.entity.path
        authorise = request.env.get("swift.authorize")
        if authorise is not None:
            kind = "read" if request.method in ("GET", "HEAD") else "write"
            request.acl = self.metadata.get((account, container), {}).get(f"x-container-{kind}")
            denial = authorise(request)
            if denial is not None:
                return denial
        if self.is_down:
            return Response(503)
        if container is None:
            return Response(201 if request.method == "PUT" else 204)
        objects = self.containers.get((account, container))
        if name is None:
            return self._serve_container(request, (account, container), objects)
        if objects is None:
            return Response(404)
        return self._serve_object(request, objects, name)

    def _serve_container(self, request, key, objects):
        if request.method in ("PUT", "POST"):
            self.containers.setdefault(key, {})
            kept = {k: v for k, v in request.headers.items() if k.startswith(("x-container-", "x-versions"))}
            self.metadata.setdefault(key, {}).update(kept)
            return Response(201 if objects is None else 202)
        if objects is None:
            return Response(404)
        if request.method == "HEAD":
            return Response(204, dict(self.metadata[key]))
        if request.method == "DELETE":
            del self.containers[key]
            return Response(204)
        params = request.params
        rows = [
            {"name": name, "content_type": objects[name][1].get("content-type", "")}
            for name in sorted(objects)
            if name.startswith(params.get("prefix", "")) and name > params.get("marker", "")
        ]
        limit = int(params.get("limit") or 10_000)
        body = json.dumps(rows[:limit]).encode()
        return Response(200, {"content-type": "application/json", **self.metadata[key]}, body)

    @staticmethod
    def _serve_object(request, objects, name):
        found = objects.get(name)
        etag = None if found is None else md5(found[0]).hexdigest()
        if request.method == "PUT":
            body = request.body.read(1 << 24)
            wanted = request.headers.get("if-match")
            if request.headers.get("if-none-match") == "*" and found is not None:
                return Response(412)
            if wanted is not None and wanted.strip('"') != etag:
                return Response(412)
            objects[name] = body, dict(request.headers)
            return Response(201, {"etag": md5(body).hexdigest()})
        if found is None:
            return Response(404)
        if request.method == "DELETE":
            del objects[name]
            return Response(204)
        body = found[0] if request.method == "GET" else b""
        kept = {k: v for k, v in found[1].items() if k.startswith("x-object-transient-")}
        return Response(200, {"etag": etag, "content-type": found[1].get("content-type", ""), **kept}, body)

    def document(self, kind, name):
        """Return the parsed document of a record."""
        return json.loads(self.containers[".swiftauth", kind][name][0])


def run_inline(function, *args):
    """Call a function at once, in place of a thread."""
    return function(*args)


class Ticking:
    """Wall and monotonic time that moves when it is told to."""

    def __init__(self, now=1_800_000_000.0):
        self.now = now

    def __call__(self):
        return self.now

    time = monotonic = __call__


def make_identities(pipeline=None, *, stale_s=30.0, outage_s=600.0, keys=KEYS):
    """Return records, directory and operations over a pipeline in memory, and their clock."""
    pipeline = pipeline or MemoryPipeline()
    clock = Ticking()
    client = document_client(pipeline.handle, AGENT)
    store = RecordStore(client)
    failures = []
    cache = RecordCache(
        store,
        stale_s=stale_s,
        outage_s=outage_s,
        monotonic=clock,
        spawn=lambda function: function(),
        log_failure=failures.append,
    )
    passwords = Passwords(run_inline, monotonic=clock)
    directory = Directory(
        cache, keys, prefix=PREFIX, now=clock, monotonic=clock, spawn=lambda function: function()
    )
    operations = IdentityOperations(
        cache, keys, passwords, directory=directory, client=client, prefix=PREFIX, now=clock
    )
    return SimpleNamespace(
        pipeline=pipeline,
        clock=clock,
        store=store,
        cache=cache,
        failures=failures,
        passwords=passwords,
        directory=directory,
        operations=operations,
    )
