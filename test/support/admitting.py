"""The filter that admits requests, over an application that answers at a pace of its own."""

import json

from swift.base.clock import ManualClock
from swift.http.body import WholeBody
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.middleware.admission.filter import Admission
from swift.middleware.admission.settings import AdmissionSettings
from test.support.sharedcache import SharedCache


class Log:
    def __init__(self):
        self.lines = []

    def warning(self, text, **_more):
        self.lines.append(text)

    info = error = warning


class Told:
    """Telemetry that remembers."""

    def __init__(self):
        self.log = Log()
        self.counted = []
        self.statsd = self
        self.metrics = self

    def increment(self, name, amount=1):
        self.counted.append(name)

    def counter(self, name, help_text, **labels):
        return self

    def inc(self, amount=1.0):
        pass


class Bench:
    def __init__(self, cache=None, **options):
        self.clock = ManualClock(1000.0)
        self.cache = cache
        self.told = Told()
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
        body = self.body if isinstance(self.body, bytes) else WholeBody(bytes(self.body))
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
            response.ended(len(self.read), True)
        return response

    def statuses(self, count, **more):
        return [self.ask(**more).status for _ in range(count)]


def reserving(cache=None, **options):
    return Bench(
        cache if cache is not None else SharedCache(),
        **{"capacity_bytes_per_second": "1 MB", "ticket_key": "k", **options},
    )


def reserve(bench, path="/v1/AUTH_a", env=None, **params):
    params = {"duration": 60, "bytes_per_second": 500000, "direction": "read", **params}
    query = "&".join(["reserve", *(f"{name}={value}" for name, value in params.items())])
    return bench.ask("POST", path, query=query, env=env)


def ticket_of(bench, **params):
    return {"x-reservation": json.loads(reserve(bench, **params).body)["ticket"]}
