"""The options that every WSGI server and every storage server shares (spec: cli-and-config.md §1.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from logging.handlers import SysLogHandler
from typing import ClassVar

from swift.config.kinds import (
    AUTO_COUNT,
    COUNT,
    NETWORKS,
    PORT,
    RESERVE,
    SECONDS,
    IPNetwork,
    Reserve,
    choice,
    integer,
    keyword,
    number,
)
from swift.config.schema import DEVICES, Settings, Writes, option

#: The metrics page listens so far from the port of the service, if nothing else is said.
METRICS_OFFSET = 10_000
PORT_MAX = 65_535


@dataclass(frozen=True)
class ServerSettings(Settings):
    """``[DEFAULT]`` of every server: where to listen and how many workers."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "eventlet_debug": "the event loop has no debugging output; use log_level = DEBUG",
    }

    bind_ip: str = option("0.0.0.0", "Address to listen on.")
    bind_port: int = option(0, "Port to listen on; required.", kind=PORT)
    bind_timeout: int = option(30, "Seconds to keep trying when the port is taken.", kind=COUNT)
    backlog: int = option(4096, "Connections the kernel may queue.", kind=COUNT)
    keep_idle: int = option(600, "TCP keep-alive idle time in seconds.", kind=COUNT)
    user: str = option("swift", "User to run as when started as root.")
    swift_dir: str = option("/etc/swift", "Directory of swift.conf and the ring files.")
    workers: int = option("auto", "Worker processes; auto: one per core, 0: unforked.", kind=AUTO_COUNT)
    max_clients: int = option(1024, "Connections one worker serves at a time.", kind=COUNT)
    client_timeout: float = option(60.0, "Seconds to wait for a client's next bytes.", kind=SECONDS)
    keepalive_timeout: float = option(
        -1.0, "Seconds an idle connection is kept; client_timeout when negative.", sample="client_timeout"
    )
    stale_worker_timeout: float = option(
        86400.0, "Seconds after a seamless reload at which former workers are ended.", kind=SECONDS
    )
    cert_file: str = option("", "TLS certificate, for testing only.")
    key_file: str = option("", "TLS key, for testing only.")
    require_proxy_protocol: bool = option(
        False,
        "Require the PROXY protocol (1 or 2) of every connection, and take the client's address from it.",
    )
    trusted_proxies: tuple[IPNetwork, ...] = option(
        "",
        "Addresses and networks of load balancers. Their headers X-Forwarded-For and X-Forwarded-Proto name "
        "the client's address and scheme; those of others are dropped.",
        kind=NETWORKS,
    )
    metrics_path: str = option("/metrics", "Path of the Prometheus text page; empty turns it off.")
    metrics_bind_ip: str = option("127.0.0.1", "Address of the metrics page, never that of clients.")
    metrics_bind_port: int = option(
        0, "Port of the metrics page; 0: bind_port + 10000, above 55535 bind_port - 10000.", kind=PORT
    )

    @property
    def metrics_port(self) -> int:
        """Port of the metrics page; 0 when none is configured."""
        if self.metrics_bind_port or not self.bind_port:
            return self.metrics_bind_port
        return self.bind_port + (
            METRICS_OFFSET if self.bind_port <= PORT_MAX - METRICS_OFFSET else -METRICS_OFFSET
        )


#: Words of ``log_facility``, also without their prefix, and of ``log_level``.
FACILITIES = tuple(f"log_{name}" for name in SysLogHandler.facility_names)
LEVELS = ("critical", "fatal", "error", "warning", "warn", "notice", "info", "debug", "notset")


@dataclass(frozen=True)
class LogSettings(Settings):
    """Logging and statsd options, valid in every section (spec: cli-and-config.md §1.2)."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "log_headers": "only the access lines of proxy-logging have headers: access_log_headers",
    }

    log_name: str = option("swift", "Program name in syslog lines.")
    log_facility: str = option(
        "LOG_LOCAL0",
        "Syslog facility.",
        kind=keyword(*FACILITIES, *(name.removeprefix("log_") for name in FACILITIES)),
    )
    log_level: str = option("INFO", "Lowest level that is logged.", kind=keyword(*LEVELS))
    log_address: str = option("/dev/log", "Syslog socket.")
    log_udp_host: str = option("", "Send syslog by UDP to this host instead.")
    log_udp_port: int = option(514, "Port of log_udp_host.", kind=PORT)
    log_max_line_length: int = option(0, "Longest line; longer ones lose their middle. 0: none.", kind=COUNT)
    log_statsd_host: str = option("", "statsd host; empty turns statsd off.")
    log_statsd_port: int = option(8125, "statsd port.", kind=PORT)
    log_statsd_default_sample_rate: float = option(1.0, "Sample rate of metrics that name none.")
    log_statsd_sample_rate_factor: float = option(1.0, "Multiplies every sample rate.")
    log_statsd_metric_prefix: str = option("", "Prefix of every metric name.")
    statsd_label_mode: str = option(
        "disabled",
        "Send metrics with labels as well, written for: librato, influxdb, graphite or dogstatsd.",
        kind=choice("disabled", "librato", "influxdb", "graphite", "dogstatsd"),
    )
    statsd_emit_legacy: bool = option(True, "Send metrics without labels.")
    log_custom_handlers: tuple[str, ...] = option(
        (),
        "Functions as module.function that add handlers to each logger; called with (conf, name, "
        "log_to_console, log_route, fmt, logger, adapted_logger).",
    )

    #: ``statsd_user_label_NAME = value`` adds the label ``user_NAME`` to every metric with labels.
    option_patterns: ClassVar[tuple[str, ...]] = ("statsd_user_label_*",)


@dataclass(frozen=True)
class AnonymizationSettings(Settings):
    """The hash of ``{field.anonymized}`` in access lines (spec: proxy.md §16)."""

    log_anonymization_method: str = option("MD5", "Hash algorithm of anonymized fields, by its hashlib name.")
    log_anonymization_salt: str = option("", "Salt of the hashes of anonymized values.")


@dataclass(frozen=True)
class AccessLineSettings(AnonymizationSettings):
    """The access lines of a storage server."""

    log_requests: bool = option(True, "Log every request.")
    log_format: str = option(
        "",
        "Format of access lines, of the fields remote_addr, time, method, path, status, content_length, "
        "referer, txn_id, user_agent, trans_time, additional_info, pid and policy_index in braces. "
        "{path.anonymized}: a hash; {time.iso8601}, {time.s}, {time.H}: parts of moments. "
        "Empty: the format of OpenStack Swift.",
    )


#: The classes of I/O scheduling, as ioprio_set(2) numbers them.
IO_CLASSES = {"ioprio_class_rt": 1, "ioprio_class_be": 2, "ioprio_class_idle": 3}


@dataclass(frozen=True)
class PrioritySettings(Settings):
    """Priorities of a server or daemon, valid in every section (spec: cli-and-config.md §1.2)."""

    nice_priority: int = option(
        0, "Niceness of its processes, -20 to 19; 0 leaves it.", kind=integer(-20, 19)
    )
    ionice_class: str = option(
        "",
        "I/O scheduling class: IOPRIO_CLASS_RT, IOPRIO_CLASS_BE or IOPRIO_CLASS_IDLE; empty leaves it.",
        kind=choice("", *IO_CLASSES),
    )
    ionice_priority: int = option(0, "Priority within the class, 0 (first) to 7.", kind=integer(0, 7))


@dataclass(frozen=True)
class TraceSettings(Settings):
    """``[DEFAULT]`` of every server: traces for OpenTelemetry."""

    trace_exporter_url: str = option(
        "",
        "Send traces to this OpenTelemetry collector by OTLP over HTTP, e.g. http://127.0.0.1:4318/v1/traces;"
        " empty: no traces. Needs the extra `opentelemetry`.",
    )
    trace_sample_ratio: float = option(
        0.01, "Part of the requests that have a trace, 0 to 1; the proxy decides.", kind=number(0, 1)
    )
    trace_parent_of_clients: bool = option(
        False,
        "Let the traceparent header of clients name the trace and decide if it is recorded; the proxy only.",
    )
    trace_object_names: bool = option(
        False, "Record names of objects; accounts and containers are always recorded."
    )
    trace_queue_size: int = option(
        2048, "Spans of a worker that wait for the collector; others are dropped.", kind=integer(1)
    )


@dataclass(frozen=True)
class StorageSettings(Settings):
    """``[DEFAULT]`` of account, container and object servers: the devices."""

    devices: str = option(
        "/srv/node", "Directory whose subdirectories are the devices.", writes=Writes(DEVICES)
    )
    mount_check: bool = option(True, "Refuse devices that are not mounted.")
    ring_ip: str = option("", "Address of this node in the rings; bind_ip when empty.")
    disable_fallocate: bool = option(False, "Do not preallocate space or check the reserve.")
    fallocate_reserve: Reserve = option("1%", "Free space to keep, bytes or percent.", kind=RESERVE)
    timestamp_ahead_max: float = option(
        60.0,
        "Refuse changes dated further ahead of this node's clock, seconds; 0 accepts all.",
        kind=number(0),
    )
    timestamp_ahead_exempt: tuple[IPNetwork, ...] = option(
        "", "Addresses and networks of nodes whose changes are accepted whatever their date.", kind=NETWORKS
    )
    replication_server: bool = option(True, "Serve replication verbs; if false, respond to them with 405.")
    recon_cache_path: str = option(
        "/var/cache/swift",
        "Directory of the recon files, in which daemons report their passes.",
        writes=Writes(),
    )


@dataclass(frozen=True)
class PortSettings(Settings):
    """``[DEFAULT]`` of the object server: workers by the ports of the rings."""

    servers_per_port: int = option(
        0, "Workers for each port that the object rings list for this node; 0: use bind_port.", kind=COUNT
    )
    ring_ip: str = option("", "Address of this node in the rings; bind_ip when empty.", sample="")
    ring_check_interval: float = option(
        15.0, "Seconds between checks of the rings for changes.", kind=SECONDS
    )
