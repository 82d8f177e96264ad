"""Access log, statsd timings and Prometheus metrics of the proxy (spec: proxy.md §16, §17).

Each request is logged once: the outermost instance marks the environment and inner instances skip marked
requests. Sub-requests of other filters have environments of their own and are logged with their ``source``.
The line is written at the end of the response body; nothing is computed for a line that is not logged.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar
from urllib.parse import quote, unquote_plus

from swift.base.clock import CachedSecondText
from swift.base.entity import API_VERSIONS, EntityPath, normalize_path_quoting
from swift.compose import Services
from swift.config.common import AnonymizationSettings
from swift.config.kinds import COUNT
from swift.config.schema import Conf, option
from swift.http import environkeys, fields
from swift.http.headers import title_case
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.telemetry.accesslog import MONTHS, AccessLog
from swift.telemetry.events import Event, LabelledEvent
from swift.telemetry.logtemplate import Anonymizer, LogTemplate, TemplateFields, Values, with_txid
from swift.telemetry.metrics import HistogramMetric
from swift.telemetry.telemetry import Telemetry

_TIMING = Event("{prefix}.timing", "Duration of a request; the prefix is `type.method.status`.")
_FIRST_BYTE = Event("{prefix}.first-byte.timing", "Time to the first byte of a GET's response.")
_TRANSFERRED = Event("{prefix}.xfer", "Bytes of a request and its response.")
_LABELS = ("account", "api", "container", "method", "policy", "resource", "status")
_LABELLED_TTFB = LabelledEvent(
    "swift_proxy_server_request_ttfb", "Time to the first byte of a GET's response.", _LABELS
)
_LABELLED_TIMING = LabelledEvent("swift_proxy_server_request_timing", "Duration of a request.", _LABELS)
_LABELLED_RECEIVED = LabelledEvent(
    "swift_proxy_server_request_body_bytes", "Bytes of requests' bodies.", _LABELS
)
_LABELLED_SENT = LabelledEvent(
    "swift_proxy_server_response_body_bytes", "Bytes of responses' bodies.", _LABELS
)

_SECONDS = HistogramMetric(
    "swift_proxy_request_seconds",
    "Time from a request to the end of its response.",
    ("type", "method", "status", "api"),
)

_needs_no_quoting = re.compile(r"[A-Za-z0-9_.~/-]*\Z").match
#: Query parameters that are secrets.
_SECRET_PARAMETERS = frozenset(("temp_url_sig", "swiftinfo_sig", "signature", "x-amz-signature"))


@dataclass(frozen=True)
class ProxyLoggingSettings(AnonymizationSettings):
    """``[filter:proxy-logging]``."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "access_log_route": "lines go where access_log_name, access_log_facility and access_log_address say",
        "storage_domain": "account and container of a line are those of the path",
        "statsd_emit_buffer_xfer_bytes_seconds": "the kernel sends bodies; bytes are counted at their end",
    }
    #: ``access_log_NAME`` replaces ``log_NAME`` for access lines.
    option_patterns: ClassVar[tuple[str, ...]] = ("access_log_*",)

    access_log_headers: bool = option(False, "Log request headers.", aliases=("log_headers",))
    access_log_headers_only: tuple[str, ...] = option((), "Log only these request headers.")
    reveal_sensitive_prefix: int = option(16, "Characters of tokens that are shown.", kind=COUNT)
    log_statsd_valid_http_methods: tuple[str, ...] = option(
        ("GET", "HEAD", "POST", "PUT", "DELETE", "COPY", "OPTIONS", "UPDATE"), "Methods named in metrics."
    )
    log_msg_template: str = option(
        "",
        "Format of access lines, of the fields that doc/howto/monitoring.md lists, in braces. "
        "Empty: the format of OpenStack Swift.",
    )


def _quoted(text: object) -> str:
    """Return a field of the access line: percent-quoted, ``-`` for missing or zero values."""
    if not text:
        return "-"
    value = str(text)
    if _needs_no_quoting(value):
        return value
    return _cached_percent_quoted(value) if len(value) <= _CACHED_QUOTE_CHARS_MAX else _percent_quoted(value)


def _percent_quoted(value: str) -> str:
    return quote(value.encode("utf-8", "surrogateescape"), ":/{}")


#: Users and agents repeat, so their quoted forms are cached.
_cached_percent_quoted = lru_cache(maxsize=1024)(_percent_quoted)
_CACHED_QUOTE_CHARS_MAX = 128


def _quoted_field(source: Mapping[str, object], name: str) -> str:
    value = source.get(name)
    return _quoted(value) if value else "-"


def _format_log_time(t: time.struct_time) -> str:
    month = MONTHS[t.tm_mon - 1]
    return f"{t.tm_mday:02d}/{month}/{t.tm_year}/{t.tm_hour:02d}/{t.tm_min:02d}/{t.tm_sec:02d}"


#: Formats Unix seconds as ``21/Nov/2026/02/15/22``.
_log_time = CachedSecondText(_format_log_time)


#: The fields of ``log_msg_template``.
ACCESS_LINE_FIELDS = TemplateFields(
    plain=(
        "method",
        "protocol",
        "status_int",
        "wire_status_int",
        "auth_token",
        "bytes_recvd",
        "bytes_sent",
        "transaction_id",
        "request_time",
        "source",
        "log_info",
        "policy_index",
        "access_user_id",
        "ttfb",
        "pid",
    ),
    anonymous=(
        "client_ip",
        "remote_addr",
        "domain",
        "path",
        "referer",
        "user_agent",
        "client_etag",
        "headers",
        "account",
        "container",
        "object",
    ),
    moments=("start_time", "end_time"),
)


@dataclass(slots=True)
class _Exchange:
    """A request as the client sent it and the progress of its response; times are Unix seconds."""

    request: Request
    method: str
    raw_path: str
    query: str
    entity: EntityPath | None
    started_s: float
    policy: str | None = None
    first_byte_s: float | None = None
    #: The status that was sent; 500 when there was no response.
    wire_status: int = 500
    #: The logged status: 499 when the client disconnected before the end.
    status: int = 500
    sent_bytes: int = 0
    ended_s: float = 0.0

    @property
    def kind(self) -> str:
        """account, container, object or UNKNOWN, as metrics name them."""
        return "UNKNOWN" if self.entity is None else self.entity.kind

    @property
    def api(self) -> str:
        """S3 or swift, as metrics name them."""
        return "S3" if environkeys.S3_CALL in self.request.env else "swift"

    @property
    def received_bytes(self) -> int:
        """Bytes of the body that the client sent."""
        return self.request.body.received


class ProxyLogging(Filter):
    """Logs and counts finished requests; raises ``ConfigError`` for an invalid ``log_msg_template``."""

    def __init__(self, app: App, settings: ProxyLoggingSettings, log: AccessLog | None, telemetry: Telemetry):
        super().__init__(app)
        self._settings = settings
        self._log = log
        self._statsd = telemetry.statsd
        self._metrics = telemetry.metrics
        self._histograms: dict[tuple[str, str, int, str], object] = {}
        self._methods = frozenset(settings.log_statsd_valid_http_methods)
        anonymize = Anonymizer(settings.log_anonymization_method, settings.log_anonymization_salt)
        self._template = (
            LogTemplate(
                settings.log_msg_template,
                ACCESS_LINE_FIELDS,
                option="log_msg_template",
                anonymize=anonymize,
                quote=_quoted,
            )
            if settings.log_msg_template
            else None
        )

    def handle(self, request: Request) -> Response:
        """Log the request once its response has ended."""
        env = request.env
        if env.get(environkeys.ACCESS_LOG_MADE):
            return self.forward(request)
        env[environkeys.ACCESS_LOG_MADE] = True
        # Keep the request as the client sent it; later filters may change it.
        exchange = _Exchange(
            request, request.method, request.raw_path, request.query, swift_path(request), time.time()
        )
        try:
            response = self.forward(request)
        except Exception:
            self._log_and_count(exchange)
            raise
        exchange.first_byte_s = time.time()
        exchange.wire_status = response.status
        # Filters to the left remove internal headers before the body ends.
        policy = response.headers.get(fields.BACKEND_STORAGE_POLICY_INDEX)
        if policy is None and environkeys.LOGGED_POLICY in env:
            policy = str(env[environkeys.LOGGED_POLICY])
        exchange.policy = policy

        def ended(sent_bytes: int, complete: bool) -> None:
            exchange.sent_bytes = sent_bytes
            exchange.status = response.status if complete else 499
            self._log_and_count(exchange)

        response.on_response_end(ended)
        return response

    def _log_and_count(self, exchange: _Exchange) -> None:
        exchange.ended_s = time.time()
        name = exchange.request.env.get(environkeys.SOURCE) or exchange.kind
        verb = exchange.method if exchange.method in self._methods else "BAD_METHOD"
        seconds = exchange.ended_s - exchange.started_s
        self._get_histogram(name, verb, exchange.status, exchange.api).observe(seconds)
        if self._statsd.enabled:
            self._send_statsd(f"{name}.{verb}.{exchange.status}", verb, exchange)
            if exchange.policy is not None and name == "object":
                self._send_statsd(f"object.policy.{exchange.policy}.{verb}.{exchange.status}", verb, exchange)
        if self._statsd.labels_enabled:
            self._send_labelled_statsd(verb, exchange)
        if self._log is not None and self._log.is_wanted:
            if self._template is None:
                self._log.write(self._format_line(exchange))
            else:
                line = self._template.line(self._template_values(exchange))
                self._log.write(with_txid(line, exchange.request.env.get(environkeys.TRANS_ID)))

    def _get_histogram(self, name: str, method: str, status: int, api: str) -> Any:
        key = (name, method, status, api)
        histogram = self._histograms.get(key)
        if histogram is None:
            histogram = self._histograms[key] = _SECONDS.of(
                self._metrics, type=name, method=method, status=str(status), api=api
            )
        return histogram

    def _send_statsd(self, prefix: str, method: str, exchange: _Exchange) -> None:
        _TIMING.time(self._statsd, exchange.ended_s - exchange.started_s, prefix=prefix)
        if method == "GET" and exchange.first_byte_s is not None:
            _FIRST_BYTE.time(self._statsd, exchange.first_byte_s - exchange.started_s, prefix=prefix)
        _TRANSFERRED.count(self._statsd, exchange.received_bytes + exchange.sent_bytes, prefix=prefix)

    def _send_labelled_statsd(self, method: str, exchange: _Exchange) -> None:
        """Send the metrics of a request under labels (spec: proxy.md §17)."""
        entity = exchange.entity
        labels = {
            "account": "" if entity is None else quote(entity.account),
            "api": exchange.api,
            "method": method,
            "resource": "" if entity is None else entity.kind,
            "status": str(exchange.status),
        }
        if entity is not None and entity.container is not None:
            labels["container"] = quote(entity.container)
        if exchange.policy is not None and labels["resource"] == "object":
            labels["policy"] = exchange.policy
        statsd = self._statsd
        seconds = exchange.ended_s - exchange.started_s
        if method == "GET" and exchange.first_byte_s is not None:
            ttfb = exchange.first_byte_s - exchange.started_s
            _LABELLED_TTFB.time(statsd, labels, ttfb)
        _LABELLED_TIMING.time(statsd, labels, seconds)
        _LABELLED_RECEIVED.count(statsd, labels, exchange.received_bytes)
        _LABELLED_SENT.count(statsd, labels, exchange.sent_bytes)

    def _format_line(self, exchange: _Exchange) -> str:
        request, method = exchange.request, exchange.method
        headers, env = request.headers, request.env
        client = client_address(headers)
        access = env.get(environkeys.ACCESS_LOGGING) or {}
        log_info = env.get(environkeys.LOG_INFO)
        peer_field = _quoted(request.remote_addr)
        started, now, sent = exchange.started_s, exchange.ended_s, exchange.sent_bytes
        return (
            f"{_quoted(client) if client else peer_field} {peer_field} {_log_time(now)} "
            f"{method if method in self._methods else _quoted(method)} "
            f"{_quoted(self._logged_path(exchange))} "
            f"HTTP/1.{request.http_minor} {exchange.status} "
            f"{_quoted(self._shorten_url_secrets(headers.get('referer', '')))} "
            f"{_quoted_field(headers, 'user-agent')} "
            f"{_quoted(self._shorten_secret(headers.get('x-auth-token')))} "
            f"{exchange.received_bytes or '-'} {sent or '-'} {_quoted_field(headers, 'etag')} "
            f"{_quoted_field(env, environkeys.TRANS_ID)} "
            f"{_quoted(self._logged_headers(headers))} {now - started:.4f} "
            f"{_quoted_field(env, environkeys.SOURCE)} "
            f"{_quoted(','.join(log_info)) if log_info else '-'} {started:.9f} {now:.9f} "
            f"{_quoted(exchange.policy)} {_quoted_field(access, 'user_id')}"
        )

    def _template_values(self, exchange: _Exchange) -> Values:
        """Return the values of ``ACCESS_LINE_FIELDS``."""
        request, entity = exchange.request, exchange.entity
        headers, env = request.headers, request.env
        access = env.get(environkeys.ACCESS_LOGGING) or {}
        first_byte = exchange.first_byte_s if exchange.method == "GET" else None
        account, container, obj = entity if entity is not None else (None, None, None)
        host = headers.get("host", "")
        return {
            "client_ip": client_address(headers) or request.remote_addr,
            "remote_addr": request.remote_addr,
            "domain": host.rpartition(":")[0] or host,
            "method": exchange.method,
            "path": self._logged_path(exchange),
            "account": account and quote(account),
            "container": container and quote(container),
            "object": obj and quote(obj),
            "protocol": f"HTTP/1.{request.http_minor}",
            "status_int": str(exchange.status),
            "wire_status_int": str(exchange.wire_status),
            "referer": self._shorten_url_secrets(headers.get("referer", "")),
            "user_agent": headers.get("user-agent"),
            "auth_token": self._shorten_secret(headers.get("x-auth-token")),
            "bytes_recvd": str(exchange.received_bytes or ""),
            "bytes_sent": str(exchange.sent_bytes or ""),
            "client_etag": headers.get("etag"),
            "transaction_id": env.get(environkeys.TRANS_ID),
            "headers": self._logged_headers(headers),
            "request_time": f"{exchange.ended_s - exchange.started_s:.4f}",
            "source": env.get(environkeys.SOURCE),
            "log_info": ",".join(env.get(environkeys.LOG_INFO) or ()),
            "policy_index": exchange.policy,
            "access_user_id": access.get("user_id"),
            "ttfb": None if first_byte is None else first_byte - exchange.started_s,
            "pid": str(os.getpid()),
            "start_time": exchange.started_s,
            "end_time": exchange.ended_s,
        }

    def _logged_path(self, exchange: _Exchange) -> str:
        """Return path and query with shortened signatures."""
        path = normalize_path_quoting(exchange.raw_path)
        return f"{path}?{self._shorten_query_secrets(exchange.query)}" if exchange.query else path

    def _shorten_secret(self, token: str | None) -> str | None:
        """Return the first characters of a secret."""
        show = self._settings.reveal_sensitive_prefix
        return f"{token[:show]}..." if token and len(token) > show else token

    def _shorten_query_secrets(self, query: str) -> str:
        """Return a query with shortened signatures, for any spelling of their names."""
        pairs = []
        for pair in query.split("&"):
            name, equals, value = pair.partition("=")
            if value and unquote_plus(name, "latin-1").lower() in _SECRET_PARAMETERS:
                pair = f"{name}{equals}{self._shorten_secret(value)}"
            pairs.append(pair)
        return "&".join(pairs)

    def _shorten_url_secrets(self, url: str) -> str:
        path, separator, query = url.partition("?")
        return f"{path}?{self._shorten_query_secrets(query)}" if separator else url

    def _logged_headers(self, headers: dict[str, str]) -> str:
        only = self._settings.access_log_headers_only
        if not self._settings.access_log_headers and not only:
            return ""
        logged_names = {name.lower() for name in only} or set(headers)
        secrets = ("x-auth-token", "x-storage-token", "x-auth-key", "x-service-token", "authorization")
        shorten_by_name = {
            **dict.fromkeys(secrets, self._shorten_secret),
            "referer": self._shorten_url_secrets,
        }
        lines = [
            f"{title_case(name)}: {shorten_by_name.get(name, str)(value)}"
            for name, value in headers.items()
            if name in logged_names
        ]
        return "\n".join(lines)


def swift_path(request: Request) -> EntityPath | None:
    """Return the path of a Swift API request; None for other requests."""
    entity = request.entity
    return None if entity is None or entity.version not in API_VERSIONS else entity.path


def client_address(headers: Mapping[str, str]) -> str:
    """Return the client's address as load balancers report it; empty without one."""
    return headers.get("x-cluster-client-ip") or headers.get("x-forwarded-for", "").split(",")[0].strip()


def access_log_conf(conf: Conf) -> Conf:
    """Return the configuration of the access log: ``access_log_*`` options override ``log_*``.

    ``log_address`` alone does not redirect access lines from the system's syslog socket, as in OpenStack
    Swift.
    """
    overrides = {k.removeprefix("access_"): v for k, v in conf.items() if k.startswith("access_log_")}
    general = {k: v for k, v in conf.items() if k != "log_address"}
    return {**general, **{k: v for k, v in overrides.items() if k not in ("log_headers", "log_headers_only")}}


def _make_filter(app: App, settings: ProxyLoggingSettings, services: Services) -> ProxyLogging:
    """Return the filter of a configuration section."""
    merged = access_log_conf(services.conf)
    telemetry = services.telemetry("proxy-server", merged)
    return ProxyLogging(app, settings, services.access_log(merged, telemetry, name="proxy-server"), telemetry)


FILTER = FilterDeclaration(
    "proxy_logging", ProxyLoggingSettings, _make_filter, position=40, default=True, section="proxy-logging"
)
