"""The access log of the proxy, its statsd timings and its Prometheus numbers (spec: proxy.md §16, §17).

A request is logged once: the outermost instance marks the environment, inner ones let it pass, and
sub-requests of other filters, which have environments of their own, are logged with their ``source``.
A line is written when the response body has ended; nothing is computed for a line nobody wants.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote_plus

from swift.base.clock import SecondText
from swift.base.entity import API_VERSIONS, requoted_path
from swift.compose import access_log_of, telemetry_of
from swift.config.kinds import COUNT
from swift.config.schema import Settings, option
from swift.http import environkeys, fields
from swift.http.headers import title_case
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.filter import App, Conf, Filter, factory_of, parse_options
from swift.telemetry.accesslog import MONTHS, AccessLog
from swift.telemetry.telemetry import Telemetry

_is_plain = re.compile(r"[A-Za-z0-9_.~/-]*\Z").match
#: Parameters of queries that are as good as a password.
_SECRET_PARAMETERS = frozenset(("temp_url_sig", "swiftinfo_sig", "signature", "x-amz-signature"))


@dataclass(frozen=True)
class ProxyLoggingSettings(Settings):
    """``[filter:proxy-logging]``."""

    access_log_headers: bool = option(False, "Log request headers.")
    access_log_headers_only: tuple[str, ...] = option((), "Log only these request headers.")
    reveal_sensitive_prefix: int = option(16, "Characters of tokens that are shown.", kind=COUNT)
    log_statsd_valid_http_methods: tuple[str, ...] = option(
        ("GET", "HEAD", "POST", "PUT", "DELETE", "COPY", "OPTIONS", "UPDATE"),
        "Methods named in metrics.",
    )


def _quoted(text: object) -> str:
    """A value as a field of the line: percent-quoted, ``-`` when missing or zero."""
    if not text:
        return "-"
    value = str(text)
    if _is_plain(value):
        return value
    return _often(value) if len(value) <= _OFTEN_CHARS else _percent_quoted(value)


def _percent_quoted(value: str) -> str:
    return quote(value.encode("utf-8", "surrogateescape"), ":/{}")


#: Users and agents come again and again.
_often = lru_cache(maxsize=1024)(_percent_quoted)
_OFTEN_CHARS = 128


def _field(source: Mapping[str, object], name: str) -> str:
    value = source.get(name)
    return _quoted(value) if value else "-"


def _logged_time(t: time.struct_time) -> str:
    month = MONTHS[t.tm_mon - 1]
    return f"{t.tm_mday:02d}/{month}/{t.tm_year}/{t.tm_hour:02d}/{t.tm_min:02d}/{t.tm_sec:02d}"


#: ``21/Nov/2026/02/15/22`` of a moment in Unix seconds.
_datetime = SecondText(_logged_time)


class ProxyLogging(Filter):
    """Logs and counts finished requests."""

    def __init__(self, app: App, settings: ProxyLoggingSettings, log: AccessLog | None, telemetry: Telemetry):
        super().__init__(app)
        self._settings = settings
        self._log = log
        self._statsd = telemetry.statsd
        self._metrics = telemetry.metrics
        self._histograms: dict[tuple[str, str, int], object] = {}
        self._methods = frozenset(settings.log_statsd_valid_http_methods)

    def handle(self, request: Request) -> Response:
        """Log the request once its response has ended."""
        env = request.env
        if env.get(environkeys.ACCESS_LOG_MADE):
            return self.forward(request)
        env[environkeys.ACCESS_LOG_MADE] = True
        method, started = request.method, time.time()
        # As the client sent it: filters further in may change it.
        target = request.raw_path, request.query
        kind = _kind_of(request)
        try:
            response = self.forward(request)
        except Exception:
            self._record(request, method, target, kind, 500, None, started, 0, None)
            raise
        first_byte = time.time()
        # Filters further out remove internal headers before the body ends.
        policy = response.headers.get(fields.BACKEND_STORAGE_POLICY_INDEX)
        if policy is None and environkeys.LOGGED_POLICY in env:
            policy = str(env[environkeys.LOGGED_POLICY])

        def ended(sent_bytes: int, complete: bool) -> None:
            status = response.status if complete else 499
            self._record(request, method, target, kind, status, policy, started, sent_bytes, first_byte)

        response.observe_end(ended)
        return response

    def _record(
        self,
        request: Request,
        method: str,
        target: tuple[str, str],
        kind: str,
        status: int,
        policy: str | None,
        started: float,
        sent: int,
        first_byte: float | None,
    ) -> None:
        now = time.time()
        received = request.body.received
        name = request.env.get(environkeys.SOURCE) or kind
        verb = method if method in self._methods else "BAD_METHOD"
        self._histogram(name, verb, status).observe(now - started)
        if self._statsd.enabled:
            self._count(f"{name}.{verb}.{status}", verb, now - started, received + sent, first_byte, started)
            if policy is not None and name == "object":
                prefix = f"object.policy.{policy}.{verb}.{status}"
                self._count(prefix, verb, now - started, received + sent, first_byte, started)
        if self._log is not None and self._log.is_wanted:
            self._log.write(self._line(request, method, target, status, policy, started, now, received, sent))

    def _histogram(self, name: str, method: str, status: int) -> Any:
        key = (name, method, status)
        histogram = self._histograms.get(key)
        if histogram is None:
            histogram = self._histograms[key] = self._metrics.histogram(
                "swift_proxy_request_seconds",
                "Time from a request to the end of its response.",
                type=name,
                method=method,
                status=str(status),
            )
        return histogram

    def _count(
        self,
        prefix: str,
        method: str,
        seconds: float,
        moved: int,
        first_byte: float | None,
        started: float,
    ) -> None:
        self._statsd.timing(f"{prefix}.timing", seconds)
        if method == "GET" and first_byte is not None:
            self._statsd.timing(f"{prefix}.first-byte.timing", first_byte - started)
        self._statsd.increment(f"{prefix}.xfer", moved)

    def _line(
        self,
        request: Request,
        method: str,
        target: tuple[str, str],
        status: int,
        policy: str | None,
        started: float,
        now: float,
        received: int,
        sent: int,
    ) -> str:
        headers, env = request.headers, request.env
        peer = request.remote_addr
        client = (
            headers.get("x-cluster-client-ip") or headers.get("x-forwarded-for", "").split(",")[0].strip()
        )
        access = env.get(environkeys.ACCESS_LOGGING) or {}
        info = env.get(environkeys.LOG_INFO)
        peer_field = _quoted(peer)
        path, query = requoted_path(target[0]), target[1]
        if query:
            path = f"{path}?{self._veiled_query(query)}"
        return (
            f"{_quoted(client) if client else peer_field} {peer_field} {_datetime(now)} "
            f"{method if method in self._methods else _quoted(method)} {_quoted(path)} "
            f"HTTP/1.{request.http_minor} {status} "
            f"{_quoted(self._veiled_url(headers.get('referer', '')))} {_field(headers, 'user-agent')} "
            f"{_quoted(self._veiled(headers.get('x-auth-token')))} "
            f"{received or '-'} {sent or '-'} {_field(headers, 'etag')} {_field(env, environkeys.TRANS_ID)} "
            f"{self._logged_headers(headers)} {now - started:.4f} {_field(env, environkeys.SOURCE)} "
            f"{_quoted(','.join(info)) if info else '-'} {started:.9f} {now:.9f} "
            f"{_quoted(policy)} {_field(access, 'user_id')}"
        )

    def _veiled(self, token: str | None) -> str | None:
        """The beginning of a secret."""
        show = self._settings.reveal_sensitive_prefix
        return f"{token[:show]}..." if token and len(token) > show else token

    def _veiled_query(self, query: str) -> str:
        """A query of whose signatures only the beginnings are left, however their names are written."""
        pairs = []
        for pair in query.split("&"):
            name, equals, value = pair.partition("=")
            if value and unquote_plus(name, "latin-1").lower() in _SECRET_PARAMETERS:
                pair = f"{name}{equals}{self._veiled(value)}"
            pairs.append(pair)
        return "&".join(pairs)

    def _veiled_url(self, url: str) -> str:
        path, mark, query = url.partition("?")
        return f"{path}?{self._veiled_query(query)}" if mark else url

    def _logged_headers(self, headers: dict[str, str]) -> str:
        only = self._settings.access_log_headers_only
        if not self._settings.access_log_headers and not only:
            return "-"
        wanted = {name.lower() for name in only} or set(headers)
        hidden = {"x-auth-token", "x-storage-token", "x-auth-key", "x-service-token", "authorization"}
        lines = [
            f"{title_case(name)}: {self._veiled(value) if name in hidden else value}"
            for name, value in headers.items()
            if name in wanted
        ]
        return _quoted("\n".join(lines))


def _kind_of(request: Request) -> str:
    """account, container, object or UNKNOWN, as metrics name them."""
    entity = request.entity
    return "UNKNOWN" if entity is None or entity.version not in API_VERSIONS else entity.path.kind


def access_conf(conf: Conf) -> Conf:
    """Where access lines go: ``access_log_*`` options override ``log_*``.

    ``log_address`` alone does not move them away from the system's syslog socket: as with the peer.
    """
    own = {k.removeprefix("access_"): v for k, v in conf.items() if k.startswith("access_log_")}
    kept = {k: v for k, v in conf.items() if k != "log_address"}
    return {**kept, **{k: v for k, v in own.items() if k not in ("log_headers", "log_headers_only")}}


def make_proxy_logging(app: App, conf: Conf) -> ProxyLogging:
    """The filter of a configuration section."""
    merged = access_conf(conf)
    telemetry = telemetry_of(merged, name="proxy-server")
    settings = parse_options(ProxyLoggingSettings, conf, "proxy-logging")
    return ProxyLogging(app, settings, access_log_of(merged, telemetry, name="proxy-server"), telemetry)


filter_factory = factory_of(make_proxy_logging)
