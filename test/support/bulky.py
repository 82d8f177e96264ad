"""What is asked of bulk operations in memory."""

import json

from swift import green
from swift.http.body import BytesBody, RequestBody, chunks_of
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.bulk.filter import Bulk, BulkSettings
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry


class App:
    """A store in memory that answers as it is told."""

    def __init__(self):
        self.objects = {}
        self.containers = {"c"}
        self.answers = {}
        #: Name of an object → the timestamp of its newest state.
        self.times = {}
        self.asked = []
        self.wait = None
        self.running = self.most = 0

    def handle(self, request):
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return self.answer(request)
        finally:
            self.running -= 1

    def answer(self, request):
        self.asked.append(request)
        green.sleep()
        if self.wait is not None:
            self.wait.wait(10)
        path = request.entity.path
        name = f"{path.container}/{path.obj}" if path.obj else path.container
        status = self.answers.get((request.method, name)) or self.answers.get(request.method)
        if status is not None:
            return error_response(status)
        if path.obj is None:
            known = name in self.containers
            if request.method == "PUT":
                self.containers.add(name)
            elif request.method == "DELETE":
                self.containers.discard(name)
            return Response(204 if known else 201 if request.method == "PUT" else 404)
        if request.method == "HEAD":
            return Response(200, {"x-backend-timestamp": self.times[name]} if name in self.times else {})
        if request.method == "PUT":
            self.objects[name] = request.headers, request.body.read()
            return Response(201)
        return Response(204 if self.objects.pop(name, None) else 404)


def make(app, **options):
    return Bulk(app, BulkSettings.parse(options), 5000, Telemetry(silent_log()))


def report(response):
    assert response.status == 200
    return json.loads(b"".join(chunks_of(response.body)))


def extract(app, data, path="/v1/a/c", *, kind="tar", headers=None, **options):
    sent = {"content-length": "1", "accept": "application/json", "x-auth-token": "t", **(headers or {})}
    body = data if isinstance(data, RequestBody) else BytesBody(data)
    request = Request("PUT", path, sent, body, query=f"extract-archive={kind}")
    return report(make(app, **options).handle(request))


def delete(app, data, *, method="POST", headers=None, **options):
    sent = {"content-length": "1", "accept": "application/json", "x-auth-token": "t", **(headers or {})}
    body = data if isinstance(data, RequestBody) else BytesBody(data)
    request = Request(method, "/v1/a", sent, body, query="bulk-delete")
    return report(make(app, **options).handle(request))
