"""Filters over applications in memory and over a simulated cluster, and fake backends."""

import base64
import hashlib
import json
from hashlib import md5

import pytest

from swift import green
from swift.base.clock import ManualClock
from swift.base.entity import EntityPath
from swift.base.limits import Limits
from swift.cluster.memcache import MemcacheError
from swift.gateway.internal_client import InternalClient
from swift.http import environkeys
from swift.http.body import BytesBody, InMemoryBody, RequestBody, iter_body_bytes
from swift.http.headers import utf8_value
from swift.http.mediatypes import TypeGuesser
from swift.http.request import Request
from swift.http.response import HTTPError, Response, error_response
from swift.middleware.admission.filter import Admission
from swift.middleware.admission.settings import AdmissionSettings
from swift.middleware.bulk.filter import Bulk, BulkSettings
from swift.middleware.encryption.filter import Encryption, EncryptionSettings
from swift.middleware.keymaster.filter import Keymaster, KeymasterSettings, parse_secrets
from swift.middleware.slo.filter import Slo
from swift.middleware.slo.settings import SloSettings
from swift.policy.policy import Policies, Policy
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.sim import Answer

# --- requests ---------------------------------------------------------------------------------------

# Request bodies that come as a test says.


class PiecedBody(RequestBody):
    """A body that arrives in these pieces; an exception among them is raised."""

    def __init__(self, *pieces, length=None):
        self.length = length
        self.received = 0
        self._pieces = list(pieces)

    def read(self, size=-1):
        assert size != 0, "nobody asks for nothing"
        if size < 0:
            return b"".join(iter(lambda: self.read(1 << 20), b""))
        while self._pieces:
            piece = self._pieces.pop(0)
            if isinstance(piece, Exception):
                raise piece
            if piece:
                self._pieces[:0] = [piece[size:]]
                self.received += len(piece[:size])
                return piece[:size]
        return b""


# --- counters ---------------------------------------------------------------------------------------

# Counters that all proxies share, in memory.


class Counters:
    """A fake of memcached's counters."""

    def __init__(self):
        self.values = {}
        self.broken = False

    def get(self, key, default=None, *, raise_on_error=False):
        return default

    def set(self, key, value, *, ttl_s=0, raise_on_error=False):
        if key.startswith("ratelimit"):
            self.values[key] = value

    def incr(self, key, delta=1, *, ttl_s=0):
        if self.broken:
            raise MemcacheError("away")
        self.values[key] = max(0, self.values.get(key, 0) + delta)
        return self.values[key]


# --- sharedcache ------------------------------------------------------------------------------------

# A memcached in memory that can be away.


class SharedCache:
    """A ``gateway.infocache.Cache`` in memory, without expiry."""

    def __init__(self):
        self.values = {}
        self.is_away = False

    def get(self, key, default=None, *, raise_on_error=False):
        if self.is_away:
            if raise_on_error:
                raise MemcacheError("away")
            return default
        return self.values.get(key, default)

    def set(self, key, value, *, ttl_s=0, raise_on_error=False):
        if self.is_away:
            if raise_on_error:
                raise MemcacheError("away")
            return
        self.values[key] = value

    def delete(self, key, *, server_key=None):
        self.values.pop(key, None)

    def incr(self, key, delta=1, *, ttl_s=0):
        if self.is_away:
            raise MemcacheError("away")
        self.values[key] = max(0, self.values.get(key, 0) + delta)
        return self.values[key]


# --- listed -----------------------------------------------------------------------------------------

# Containers that list what a test says, for what walks over listings.


class Listed:
    """Lists rows by container path, newest version first; records its requests."""

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
        """Return the requested paths of a method."""
        return [request.raw_path for request in self.asked if request.method == method]


def row(name, days=0.0, size=1, **more):
    """Return a row dated ``days`` days after the beginning of 1970."""
    hours = round(days * 24)
    stamp = f"1970-01-{1 + hours // 24:02}T{hours % 24:02}:00:00.000000"
    plain = {"bytes": size, "hash": "e", "content_type": "t/x", "last_modified": stamp}
    return {"name": name, **plain, **more}


# --- fronts -----------------------------------------------------------------------------------------

# A filter over a simulated cluster, as the owner of an account asks it.


class FilterFixture:
    """Sends requests to a filter; ``denied`` has the forbidden paths, or methods and paths."""

    def __init__(self, sim, filter_):
        self.sim, self.filter = sim, filter_
        self.denied = set()
        #: More of the environment of requests.
        self.environ = {}

    def open(self, method, path, headers=None, body=b""):
        """Return the response with its body unread."""
        target, _, query = path.partition("?")
        sent = dict(headers or {})
        if method in ("PUT", "POST"):
            sent.setdefault("content-length", str(len(body) if isinstance(body, bytes) else body.length))
        env = {"swift.cache": self.sim.cache, "swift_owner": True, "swift.authorize": self.authorise}
        env |= self.environ
        try:
            return self.filter.handle(Request(method, f"/v1{target}", sent, body, query=query, env=env))
        except HTTPError as error:
            return error.response

    def __call__(self, method, path, headers=None, body=b""):
        return Answer(self.open(method, path, headers, body))

    def authorise(self, request):
        """Return 403 for a denied request."""
        path = request.raw_path.removeprefix("/v1")
        return None if self.denied.isdisjoint((path, (request.method, path))) else error_response(403)


# --- encrypted --------------------------------------------------------------------------------------

# Keymaster and encryption over a simulated cluster.


ONE = base64.b64encode(b"A" * 32).decode()
TWO = base64.b64encode(b"B" * 32).decode()


class EncryptionFixture(FilterFixture):
    """The keymaster and encryption filters, and other filters left of them."""

    def __init__(self, sim, left=(), disable=False, **options):
        options = options or {"encryption_root_secret": ONE}
        settings = EncryptionSettings(disable_encryption=disable)
        app = Encryption(sim.app, settings, Limits(), silent_log())
        front = Keymaster(app, parse_secrets(options, KeymasterSettings.parse(options)))
        for make in reversed(left):
            front = make(front)
        super().__init__(sim, front)


def as_stored(sim, method, path, headers=None):
    """Send a request for an encrypted object as it is stored."""
    return sim(method, path, headers, env={environkeys.CRYPTO_OVERRIDE: True})


def md5_of(data):
    """Return the hexadecimal MD5 of bytes."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def bare(etag):
    """Return an ETag without quotes."""
    return etag.strip('"')


# --- large ------------------------------------------------------------------------------------------

# Static large objects over a simulated cluster.


PIECES = {"one": b"0000", "two": b"11111", "three": b"222222"}
WHOLE = b"".join(PIECES.values())
ETAG = md5("".join(md5(piece).hexdigest() for piece in PIECES.values()).encode()).hexdigest()
PUT = "?multipart-manifest=put"


class Errors:
    """A log that records only errors."""

    def __init__(self, texts):
        self._texts = texts

    def error(self, text, *, txid=None):
        self._texts.append(text)


class LargeObjectFixture(FilterFixture):
    """The filter for static large objects; records the requests of the last download."""

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
    """Return the paths of the last request's backend requests to object servers."""
    return [
        path
        for kind, _n, method, path, _headers in sim.transport.requests
        if kind == "object" and (not methods or method in methods)
    ]


def asked_name(path):
    return path.rpartition("/")[2].partition("?")[0]


# --- smallfilters -----------------------------------------------------------------------------------

# The rest of the pipeline as tests of small filters need it.


class SmallBackend:
    """A backend of accounts and containers with system metadata; records the last request."""

    def __init__(self, **answer):
        self.answer = answer
        self.account = {}
        self.container = {}
        self.seen = None

    def handle(self, request):
        if request.env.get("REMOTE_USER") == ".wsgi.pre_authed":
            path = request.entity.path
            return Response(
                204, self.account.get(path.account, {}) if path.container is None else self.container
            )
        self.seen = request
        return Response(200, {name.replace("_", "-"): value for name, value in self.answer.items()})


def ask(filter_, method="GET", path="/v1/AUTH_a/c/o", headers=None, **more):
    return filter_.handle(Request(method, path, dict(headers or {}), **more))


# --- bulky ------------------------------------------------------------------------------------------

# What is asked of bulk operations in memory.


class BulkBackend:
    """A store in memory with configurable responses."""

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
    return json.loads(b"".join(iter_body_bytes(response.body)))


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


# --- quotas -----------------------------------------------------------------------------------------

# An account and a container that hold something, and uploads to them.


#: Of 90 bytes and 9 objects that are there already; a quota that is no number is none.
uploads_that_fit_or_not = pytest.mark.parametrize(
    ("word", "quota", "size", "fits"),
    [
        ("bytes", "100", 10, True),
        ("bytes", "100", 11, False),
        ("bytes", "0", 0, False),
        ("bytes", "90", 0, True),
        ("bytes", "", 1000, True),
        ("bytes", "junk", 1000, True),
        ("bytes", "9" * 256, 1000, True),
        ("count", "10", 1000, True),
        ("count", "9", 0, False),
    ],
)
POLICIES = Policies((Policy(0, "gold", is_default=True, aliases=("yellow",)), Policy(3, "Silver")))


class QuotaBackend:
    """A backend of an account and a container with content."""

    def __init__(self):
        self.account = {
            "x-account-bytes-used": "90",
            "x-account-object-count": "9",
            "x-account-storage-policy-silver-bytes-used": "50",
            "x-account-storage-policy-silver-object-count": "5",
        }
        self.container = {
            "x-container-bytes-used": "90",
            "x-container-object-count": "9",
            "x-backend-storage-policy-index": "3",
            "x-container-write": "writers",
        }
        self.container_status = 204
        self.seen = None

    def handle(self, request):
        path = request.entity.path
        if request.env.get("REMOTE_USER") == ".wsgi.pre_authed":
            status = 204 if path.container is None else self.container_status
            headers = dict(self.account if path.container is None else self.container)
            if path.container is None:
                request.env["swift.infocache"][f"account/{path.account}"] = {
                    "status": 204,
                    "bytes": "90",
                    "total_object_count": "9",
                    "storage_policies": {"3": {"bytes": 50, "object_count": 5}},
                    "sysmeta": self.stripped("x-account-sysmeta-"),
                    "meta": self.stripped("x-account-meta-"),
                }
            return Response(status, headers)
        self.seen = request
        return Response(204, dict(self.account) if request.method in ("GET", "HEAD") else {})

    def stripped(self, prefix):
        return {name[len(prefix) :]: value for name, value in self.account.items() if name.startswith(prefix)}


def put(filter_, app, size, *, chunked=False, env=None):
    app.seen = None
    body = BytesBody(b"x" * size, chunked=chunked)
    response = filter_.handle(Request("PUT", "/v1/a/c/o", {}, body, env=env or {}))
    assert (response.status == 204) == (app.seen is not None)
    return response


def replied(answer):
    """Return the reason why an upload was refused, or None."""
    assert answer.status in (204, 413)
    return answer.body if answer.status == 413 else None


# --- admitting --------------------------------------------------------------------------------------

# The filter that admits requests, over an application that answers at a pace of its own.


class Log:
    def __init__(self):
        self.lines = []

    def warning(self, text, **_more):
        self.lines.append(text)

    info = error = warning


class Replied:
    """Telemetry that records its counters."""

    enabled = True

    def __init__(self):
        self.log = Log()
        self.counted = []
        self.statsd = self
        self.metrics = self

    def increment(self, name, amount=1):
        self.counted.append(name)

    def child(self, metric, labels, make):
        return self

    def inc(self, amount=1.0):
        pass


class AdmissionFixture:
    def __init__(self, cache=None, **options):
        self.clock = ManualClock(1000.0)
        self.cache = cache
        self.told = Replied()
        self.slept = []
        self.body = b"x" * 100
        self.seen = []
        self.takes_s = 0.0
        self.filter = Admission(
            self,
            AdmissionSettings.parse({name: str(value) for name, value in options.items()}),
            self.told,
            clock=self.clock,
            sleep=self.sleep,
            spawn=lambda call, arg: call(arg),
        )

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.clock.advance(seconds)

    def handle(self, request):
        self.seen.append(request)
        self.clock.advance(self.takes_s)
        request.body.read()
        body = self.body if isinstance(self.body, bytes) else InMemoryBody(bytes(self.body))
        return Response(200, {}, body)

    def ask(self, method="GET", path="/v1/AUTH_a/c/o", headers=None, body=b"", env=None, query=""):
        env = {} if env is None else env
        if self.cache is not None:
            env.setdefault("swift.cache", self.cache)
        request = Request(method, path, dict(headers or {}), body, env=env, query=query)
        try:
            response = self.filter.handle(request)
        except HTTPError as error:
            return error.response
        if response.status == 200:
            self.read = response.read_body()
            response.report_end(len(self.read), True)
        return response

    def statuses(self, count, **more):
        return [self.ask(**more).status for _ in range(count)]


def reserving(cache=None, **options):
    return AdmissionFixture(
        cache if cache is not None else SharedCache(),
        **{"capacity_bytes_per_second": "1 MB", "ticket_key": "k", **options},
    )


def reserve(bench, path="/v1/AUTH_a", env=None, **params):
    params = {"duration": 60, "bytes_per_second": 500000, "direction": "read", **params}
    query = "&".join(["reserve", *(f"{name}={value}" for name, value in params.items())])
    return bench.ask("POST", path, query=query, env=env)


def ticket_of(bench, **params):
    return {"x-reservation": json.loads(reserve(bench, **params).body)["ticket"]}
