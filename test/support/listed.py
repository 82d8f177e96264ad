"""Containers that list what a test says, for what walks over listings."""

import json

from swift.base.entity import EntityPath
from swift.gateway.internal_client import InternalClient
from swift.http.headers import utf8_value
from swift.http.response import Response, error_response


class Listed:
    """Container path → its rows in order, newest version first; keeps what it was asked for."""

    def __init__(self, **containers):
        self.rows = {"/v1" + EntityPath("a", name).quoted: rows for name, rows in containers.items()}
        #: (method, path) → status.
        self.answers = {}
        self.heads = {}
        self.asked = []
        self.client = InternalClient(self.handle, "test", tries=1)

    def handle(self, request):
        self.asked.append(request)
        path = request.raw_path
        params = {name: utf8_value(value) for name, value in request.params.items()}
        status = self.answers.get((request.method, path))
        if status is not None:
            return error_response(status)
        if request.method == "GET" and path in self.rows:
            page = self._page(self.rows[path], params)
            return Response(200, {"content-type": "application/json"}, json.dumps(page).encode())
        if request.method == "HEAD" and path in self.heads:
            return Response(200, dict(self.heads[path]))
        return error_response(404 if request.method in ("GET", "HEAD") else 204)

    def _page(self, rows, params):
        marker, version = params.get("marker", ""), params.get("version_marker")
        rows = [row for row in rows if row["name"].startswith(params.get("prefix", ""))]
        if version:
            same = [n for n, row in enumerate(rows) if row["name"] == marker]
            at = next(n for n in same if rows[n].get("version_id", "null") == version)
            rows = rows[at + 1 :]
        elif marker:
            rows = [row for row in rows if row["name"] > marker]
        return rows[: int(params.get("limit", 10000))]

    def methods(self, method):
        """The paths that were asked for by a method."""
        return [request.raw_path for request in self.asked if request.method == method]


def row(name, days=0.0, size=1, **more):
    """A row of so many days after the beginning of 1970."""
    hours = round(days * 24)
    stamp = f"1970-01-{1 + hours // 24:02}T{hours % 24:02}:00:00.000000"
    plain = {"bytes": size, "hash": "e", "content_type": "t/x", "last_modified": stamp}
    return {"name": name, **plain, **more}
