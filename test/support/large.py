"""Static large objects over a simulated cluster."""

import json
from hashlib import md5

from swift.http.mediatypes import TypeGuesser
from swift.middleware.slo.filter import Slo
from swift.middleware.slo.settings import SloSettings
from test.support.fronts import FilterFront

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


class Front(FilterFront):
    """Static large objects; the requests of the last one that was asked are kept."""

    def __init__(self, sim, **options):
        settings = SloSettings.parse({"rate_limit_segments_per_sec": "0", **options})
        guesser = TypeGuesser("/none", ())
        self.errors = []
        super().__init__(sim, Slo(sim.app, settings, sim.hasher, guesser, Errors(self.errors), sim.policies))

    def open(self, *args, **kwargs):
        self.sim.transport.requests.clear()
        return super().open(*args, **kwargs)

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
