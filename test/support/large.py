"""Static large objects over a simulated cluster."""

import json
from hashlib import md5

from swift.http.mediatypes import TypeGuesser
from swift.http.request import Request
from swift.http.response import HTTPError, error_response
from swift.middleware.slo.filter import Slo
from swift.middleware.slo.settings import SloSettings
from test.support.sim import Answer

PIECES = {"one": b"0000", "two": b"11111", "three": b"222222"}
WHOLE = b"".join(PIECES.values())
ETAG = md5("".join(md5(piece).hexdigest() for piece in PIECES.values()).encode()).hexdigest()
PUT = "?multipart-manifest=put"


class Errors:
    """A log of which only errors are looked at."""

    def __init__(self, texts):
        self._texts = texts

    def error(self, text, *, txid=None):
        self._texts.append(text)


class Front:
    """The filter over a simulated cluster; ``deny`` names paths that a caller may not ask for."""

    def __init__(self, sim, **options):
        self.sim = sim
        settings = SloSettings.parse({"rate_limit_segments_per_sec": "0", **options})
        guesser = TypeGuesser("/none", ())
        self.errors = []
        self.filter = Slo(sim.app, settings, sim.hasher, guesser, Errors(self.errors), sim.policies)
        self.denied = {}

    def open(self, method, path, headers=None, body=b""):
        target, _, query = path.partition("?")
        sent = dict(headers or {})
        if method in ("PUT", "POST"):
            sent.setdefault("content-length", str(len(body) if isinstance(body, bytes) else body.length))
        env = {"swift.cache": self.sim.cache, "swift_owner": True, "swift.authorize": self.authorise}
        self.sim.transport.requests.clear()
        try:
            return self.filter.handle(Request(method, f"/v1{target}", sent, body, query=query, env=env))
        except HTTPError as error:
            return error.response

    def authorise(self, request):
        status = self.denied.get(request.method, {}).get(request.raw_path.removeprefix("/v1"))
        return None if status is None else error_response(status)

    def __call__(self, *args, **kwargs):
        return Answer(self.open(*args, **kwargs))

    def upload(self, path, manifest, headers=None):
        return self("PUT", path + PUT, headers, json.dumps(manifest).encode())


def object_paths(sim, *methods):
    """Paths of the last request's requests to object servers."""
    return [
        path
        for kind, _n, method, path, _headers in sim.transport.requests
        if kind == "object" and (not methods or method in methods)
    ]


def asked_name(path):
    return path.rpartition("/")[2].partition("?")[0]
