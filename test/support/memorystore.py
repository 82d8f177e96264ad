"""A cluster as filters see it, in memory: one decision after another, with faults between any two of them.

Objects have the conditions of decision 0011, timestamps and tombstones; containers list at once. A container
that was deleted is there again while it has rows, as replication may bring it back. Each request first lets
others run, as often as ``chance`` says, and may then fail in three ways: nothing was done, the answer is
lost, or the process that asked has died (``Crash``).
"""

import json
import time
from hashlib import md5

from swift import green
from swift.base.timestamp import Timestamp
from swift.cluster.expiry import parse_task
from swift.http import fields
from swift.http.response import Response, error_response
from swift.s3.api.metadata import echoed_metadata

_STORED = ("content-type", "x-object-meta-", "x-object-sysmeta-", "x-object-transient-sysmeta-")
_CONTAINER = ("x-container-", "x-versions-")


#: Turns that others run first: mostly few, sometimes as many as whole operations take.
_PAUSES = (0, 0, 0, 1, 1, 1, 2, 2, 5, 5, 15, 150)


class Crash(Exception):
    """The process that asked is gone."""


class Stored:
    """One state of an object; a tombstone has no body."""

    def __init__(self, at, body=None, headers=()):
        self.at = at
        self.body = body
        self.headers = dict(headers)


class MemoryStore:
    """The end of a pipeline."""

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
        """The queue of the expirer, which does each task at once."""
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
        """The status of a change whose conditions do not hold, else 0."""
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
        headers |= echoed_metadata(request.headers)
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
