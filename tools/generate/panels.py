"""Descriptions of all dashboards: their panels, with titles, units, expressions and what they mean."""

from __future__ import annotations

from dataclasses import dataclass

#: Requests that clients sent: sub-requests have the filter that made them as their type.
CLIENTS = 'type=~"account|container|object|UNKNOWN"'
REPLICATORS = 'daemon=~".*-replicator|object-reconstructor"'
#: Window of rates: Grafana's choice for the interval of the graph and of scraping.
WINDOW = "[$__rate_interval]"
HERE = 'instance=~"$instance"'

Target = tuple[str, str]


@dataclass(frozen=True)
class Panel:
    """A graph or number: expressions with their legends, Grafana's unit, and what it means."""

    title: str
    unit: str
    about: str
    targets: tuple[Target, ...]
    kind: str = "timeseries"
    lowest: int | None = 0
    #: A number is red from this value.
    red_from: float | None = None


@dataclass(frozen=True)
class Dashboard:
    """Panels under one title; ``name`` is that of its file."""

    name: str
    title: str
    about: str
    panels: tuple[Panel, ...]
    #: The metric whose instances the reader chooses from; empty for figures of the whole cluster.
    instances_of: str = ""


def _graph(title: str, unit: str, about: str, *targets: Target, lowest: int | None = 0) -> Panel:
    return Panel(title, unit, about, targets, lowest=lowest)


def _stat(title: str, unit: str, about: str, expression: str, red_from: float | None = None) -> Panel:
    return Panel(title, unit, about, ((expression, ""),), "stat", red_from=red_from)


def _rate(metric: str, by: str = "", matchers: str = "") -> str:
    """Return the summed rate of a counter."""
    selector = f"{metric}{{{matchers}}}" if matchers else metric
    return f"sum by ({by}) (rate({selector}{WINDOW}))" if by else f"sum(rate({selector}{WINDOW}))"


def _quantile(part: float, histogram: str, by: str = "", matchers: str = "") -> str:
    """Return a quantile of a histogram."""
    groups = f"le, {by}" if by else "le"
    return f"histogram_quantile({part:g}, {_rate(f'{histogram}_bucket', groups, matchers)})"


def _grown(series: str, window: str) -> str:
    """Return the growth of counters, also of those that began within the window."""
    return f"increase({series}[{window}]) > 0 or ({series} unless {series} offset {window})"


def _share(part: str, whole: str) -> str:
    """Return a share that is 0 when the part has no series yet."""
    return f"({part} or vector(0)) / {whole}"


def _events(title: str, daemons: str, about: str) -> Panel:
    """Return the graph of what daemons count, by daemon and event."""
    matchers = f'daemon=~"{daemons}"'
    expression = _rate("swift_daemon_events_total", "daemon, event", matchers)
    return _graph(title, "ops", about, (expression, "{{daemon}} {{event}}"))


_REQUESTS = "swift_proxy_request_seconds"
_BACKEND = "swift_backend_request_seconds"
_QUARANTINES = 'swift_daemon_events_total{event="quarantines"}'
_AGE = "time() - max by (daemon) (swift_daemon_pass_end_seconds{matchers})"


def _latencies(matchers: str) -> tuple[Target, ...]:
    parts = (0.5, 0.95, 0.99)
    return tuple((_quantile(part, _REQUESTS, "", matchers), f"p{part * 100:g}") for part in parts)


OVERVIEW = Dashboard(
    "overview",
    "Swift: overview",
    "State of the cluster: requests, errors, latency, missing copies, devices and daemons.",
    (
        _stat(
            *("Client requests", "reqps", "Requests of clients, over all proxies."),
            _rate(f"{_REQUESTS}_count", "", CLIENTS),
        ),
        _stat(
            *("Server errors", "percentunit", "Share of client requests with a status of 500 or more."),
            _share(
                _rate(f"{_REQUESTS}_count", "", f'{CLIENTS},status=~"5.."'),
                _rate(f"{_REQUESTS}_count", "", CLIENTS),
            ),
            0.01,
        ),
        _stat(
            *("Latency p99", "s", "99 of 100 client requests end within this time, bodies included."),
            _quantile(0.99, _REQUESTS, "", CLIENTS),
        ),
        _stat(
            *("Servers without response", "short", "Addresses that Prometheus could not scrape."),
            'count(up{job=~"swift.*"} == 0) or vector(0)',
            1,
        ),
        _stat(
            *("Missing copies", "short", "Copies that devices lack, as of the replicators' last passes."),
            "sum(swift_copies_missing)",
            1,
        ),
        _stat(
            *("Device errors, 1 h", "short", "I/O errors of all devices within the last hour."),
            f"sum({_grown('swift_device_errors_total', '1h')}) or vector(0)",
            1,
        ),
        _graph(
            *("Client requests by API", "reqps", "S3 and Swift."),
            (_rate(f"{_REQUESTS}_count", "api", CLIENTS), "{{api}}"),
        ),
        _graph(
            *("Client requests by status", "reqps", "499 means that the client left before the end."),
            (_rate(f"{_REQUESTS}_count", "status", CLIENTS), "{{status}}"),
        ),
        _graph(
            *("Latency of client requests", "s", "From the request's head to the response's end."),
            *_latencies(CLIENTS),
        ),
        _graph(
            *("Storage requests by server", "reqps", "Requests that storage servers answer."),
            (_rate(f"{_BACKEND}_count", "server"), "{{server}}"),
        ),
        _graph(
            *("Copies to heal", "short", "Missing, misplaced and failed; 0 when a rebalance is over."),
            *((f"sum(swift_copies_{name})", name) for name in ("missing", "misplaced", "failed")),
        ),
        _graph(
            *("Age of the last pass", "s", "Time since daemons last completed a pass on any node."),
            (_AGE.format(matchers=""), "{{daemon}}"),
        ),
        _graph(
            *("Device errors", "short", "I/O errors within an hour, by node and device."),
            (
                f"sum by (instance, device) ({_grown('swift_device_errors_total', '1h')})",
                "{{instance}} {{device}}",
            ),
        ),
        _graph(
            *("Free space", "percentunit", "Share of each mounted device that is free (node exporter)."),
            (
                'node_filesystem_avail_bytes{mountpoint=~"/srv/node/.+"}'
                ' / node_filesystem_size_bytes{mountpoint=~"/srv/node/.+"}',
                "{{instance}} {{mountpoint}}",
            ),
        ),
    ),
)

PROXY = Dashboard(
    "proxy",
    "Swift: proxy",
    "Requests, latency, connections and overload of proxy servers.",
    (
        _graph(
            *("Client requests by method", "reqps", "Requests of clients."),
            (_rate(f"{_REQUESTS}_count", "method", f"{CLIENTS},{HERE}"), "{{method}}"),
        ),
        _graph(
            *("Client requests by type", "reqps", "UNKNOWN: S3, authentication and other paths."),
            (_rate(f"{_REQUESTS}_count", "type", f"{CLIENTS},{HERE}"), "{{type}}"),
        ),
        _graph(
            *("Client requests by proxy", "reqps", "An even load balancer gives equal lines."),
            (_rate(f"{_REQUESTS}_count", "instance", f"{CLIENTS},{HERE}"), "{{instance}}"),
        ),
        _graph(
            *("Errors and disconnects", "reqps", "Statuses of 499 and above: the proxy's log has reasons."),
            (
                _rate(f"{_REQUESTS}_count", "status", f'{CLIENTS},{HERE},status=~"499|5.."'),
                "{{status}}",
            ),
        ),
        _graph(
            *("Latency", "s", "From the request's head to the response's end; large bodies take longer."),
            *_latencies(f"{CLIENTS},{HERE}"),
        ),
        _graph(
            *("Latency p99 by method", "s", "HEAD has no body: it shows the servers' part alone."),
            (_quantile(0.99, _REQUESTS, "method", f"{CLIENTS},{HERE}"), "{{method}}"),
        ),
        _graph(
            *(
                "Sub-requests",
                "reqps",
                "Requests that filters make, by filter: SLO, account data and others.",
            ),
            (
                _rate(f"{_REQUESTS}_count", "type", f"{CLIENTS.replace('=~', '!~')},{HERE}"),
                "{{type}}",
            ),
        ),
        _graph(
            *("Open connections", "short", "Connections of clients to each process group."),
            (f"sum by (instance) (swift_http_connections{{{HERE}}})", "{{instance}}"),
        ),
        _graph(
            *("Refused and displaced", "ops", "Bad request heads, and connections closed for lack of room."),
            (_rate("swift_http_bad_requests_total", "", HERE), "bad requests"),
            (_rate("swift_http_displaced_connections_total", "", HERE), "displaced connections"),
        ),
        _graph(
            *("Admission control", "reqps", "Requests that admission control refused, by status."),
            (_rate("swift_admission_refused_total", "status", HERE), "{{status}}"),
        ),
        _graph(
            *("Connections to storage nodes", "ops", "New connections; pooled ones are not counted."),
            (_rate("swift_client_connections_total", "instance", HERE), "{{instance}} opened"),
            (_rate("swift_client_errors_total", "instance", HERE), "{{instance}} failed"),
        ),
        _graph(
            *("Clock offset", "s", "Median of the storage servers' clocks minus the proxy's."),
            (f"max by (instance) (swift_clock_offset_seconds{{{HERE}}})", "{{instance}}"),
            lowest=None,
        ),
    ),
    f"{_REQUESTS}_count",
)

STORAGE = Dashboard(
    "storage-node",
    "Swift: storage node",
    "Account, container and object servers, and their devices.",
    (
        _graph(
            *("Requests by server", "reqps", "Requests of proxies, replicators and other daemons."),
            (_rate(f"{_BACKEND}_count", "instance, server", HERE), "{{instance}} {{server}}"),
        ),
        _graph(
            *("Object requests by method", "reqps", "REPLICATE and SSYNC come from other nodes."),
            (_rate(f"{_BACKEND}_count", "method", f'server="object",{HERE}'), "{{method}}"),
        ),
        _graph(
            *("Responses by status", "reqps", "404 is usual: proxies ask several nodes. 507: no device."),
            (_rate("swift_backend_responses_total", "status", HERE), "{{status}}"),
        ),
        _graph(
            *("Server errors", "reqps", "Statuses of 500 and above, by server. 507: the device is away."),
            (
                _rate("swift_backend_responses_total", "instance, server, status", f'status=~"5..",{HERE}'),
                "{{instance}} {{server}} {{status}}",
            ),
        ),
        _graph(
            *("Latency p99 by server", "s", "Time that storage servers take to answer."),
            (_quantile(0.99, _BACKEND, "instance, server", HERE), "{{instance}} {{server}}"),
        ),
        _graph(
            *("Latency p99 of object requests", "s", "By method."),
            (_quantile(0.99, _BACKEND, "method", f'server="object",{HERE}'), "{{method}}"),
        ),
        _graph(
            *(
                "Device latency p99",
                "s",
                "By device; needs store_wrappers = observed. One slow disk stands out.",
            ),
            (_quantile(0.99, "swift_store_seconds", "instance, device", HERE), "{{instance}} {{device}}"),
        ),
        _graph(
            *("Calls of the object engine", "ops", "By device and call; needs store_wrappers = observed."),
            (_rate("swift_store_seconds_count", "device, call", HERE), "{{device}} {{call}}"),
        ),
        _graph(
            *("Device errors", "short", "I/O errors of all nodes within an hour, of servers and daemons."),
            (
                f"sum by (instance, device, error) ({_grown('swift_device_errors_total', '1h')})",
                "{{instance}} {{device}} {{error}}",
            ),
        ),
        _graph(
            *("Open connections", "short", "Connections of proxies and daemons."),
            (f"sum by (instance) (swift_http_connections{{{HERE}}})", "{{instance}}"),
        ),
        _graph(
            *(
                "Volumes of packed devices",
                "bytes",
                "Live and dead records; the compactor returns dead ones.",
            ),
            *(
                (f"sum by (instance, device) (swift_packed_{name}_bytes{{{HERE}}})", f"{{{{device}}}} {name}")
                for name in ("live", "dead", "index")
            ),
        ),
    ),
    f"{_BACKEND}_count",
)

REPLICATION = Dashboard(
    "replication",
    "Swift: replication and healing",
    "Copies to heal, passes of replicators and the reconstructor, audits and damage.",
    (
        _stat("Missing copies", "short", "Copies that devices lack.", "sum(swift_copies_missing)", 1),
        _stat(
            *("Misplaced", "short", "Partitions and databases on devices where they do not belong."),
            "sum(swift_copies_misplaced)",
        ),
        _stat(
            *("Failed", "short", "Partitions and databases that the last pass could not repair."),
            "sum(swift_copies_failed)",
            1,
        ),
        _stat(
            *("Quarantined, 1 d", "short", "Damaged files that auditors set aside within a day."),
            f"sum({_grown(_QUARANTINES, '1d')}) or vector(0)",
            1,
        ),
        _stat(
            *("Late audits", "short", "Devices whose audit takes longer than scrub_days."),
            "count(swift_auditor_scrub_kept == 0) or vector(0)",
            1,
        ),
        *(
            _graph(
                *(f"{name.title()} by ring", "short", about),
                (f"sum by (ring) (swift_copies_{name})", "{{ring}}"),
            )
            for name, about in (
                ("missing", "Falls to 0 after a disk is replaced."),
                ("misplaced", "Falls to 0 when a rebalance is over."),
                ("failed", "Stays above 0 while a remote node refuses or is away."),
            )
        ),
        _graph(
            *(
                "Devices with most to heal",
                "short",
                "Ten devices with the most missing and misplaced copies.",
            ),
            (
                "topk(10, sum by (instance, device) (swift_copies_missing + swift_copies_misplaced))",
                "{{instance}} {{device}}",
            ),
        ),
        _graph(
            *("Age of the last pass", "s", "Oldest over all nodes."),
            (
                f"time() - min by (daemon) (swift_daemon_pass_end_seconds{{{REPLICATORS}}})",
                "{{daemon}}",
            ),
        ),
        _graph(
            *("Duration of a pass", "s", "Longest over all nodes."),
            (f"max by (daemon) (swift_daemon_pass_seconds{{{REPLICATORS}}})", "{{daemon}}"),
        ),
        _graph(
            *("Units of work", "ops", "Partitions and databases that passes complete."),
            (_rate("swift_daemon_units_total", "daemon", REPLICATORS), "{{daemon}}"),
        ),
        _events(
            *("Events of replicators", ".*-replicator|object-reconstructor"),
            "attempts, successes and failures; rsyncs and diffs are real work.",
        ),
        _graph(
            *("Replication requests", "reqps", "REPLICATE compares, SSYNC transfers."),
            (
                _rate(f"{_BACKEND}_count", "server, method", 'method=~"REPLICATE|SSYNC"'),
                "{{server}} {{method}}",
            ),
        ),
        _events("Events of auditors", ".*-auditor.*", "quarantines are damaged files or databases."),
        _graph(
            *("Expected duration of an audit", "d", "By device; needs scrub_days."),
            ("max by (instance, device) (swift_auditor_scrub_days_expected)", "{{instance}} {{device}}"),
        ),
    ),
)

DATABASES = Dashboard(
    "databases",
    "Swift: databases and sharding",
    "Account and container databases: load, updates, sharding, expiry.",
    (
        *(
            _graph(
                *(f"{server.title()} requests by method", "reqps", about),
                (_rate(f"{_BACKEND}_count", "method", f'server="{server}"'), "{{method}}"),
            )
            for server, about in (
                ("container", "PUT and DELETE are rows of objects; UPDATE has many rows at once."),
                ("account", "PUT has the figures of a container."),
            )
        ),
        _graph(
            *("Latency p99 by method", "s", "Container servers; a long GET is a listing."),
            (_quantile(0.99, _BACKEND, "method", 'server="container"'), "{{method}}"),
        ),
        _graph(
            *("Responses by status", "reqps", "Account and container servers."),
            (
                _rate("swift_backend_responses_total", "server, status", 'server=~"account|container"'),
                "{{server}} {{status}}",
            ),
        ),
        _events(
            *("Events of updaters", ".*-updater"),
            "Figures of containers and postponed rows; failures wait for the next pass.",
        ),
        _events("Events of the sharder", "container-sharder", "Containers visited, cleaved and failed."),
        _graph(
            *("Age of the last pass", "s", "Oldest over all nodes, of daemons of databases."),
            (
                "time() - min by (daemon)"
                ' (swift_daemon_pass_end_seconds{daemon=~"(account|container)-.*|object-updater"})',
                "{{daemon}}",
            ),
        ),
        _graph(
            *("Units of work", "ops", "Databases that passes complete."),
            (
                _rate("swift_daemon_units_total", "daemon", 'daemon=~"(account|container)-.*"'),
                "{{daemon}}",
            ),
        ),
        _events("Events of database replicators", "(account|container)-replicator", "diffs have sent rows."),
        _graph(
            *("Expirer, reconciler and reaper", "ops", "Objects and accounts that passes complete."),
            (
                _rate(
                    "swift_daemon_units_total",
                    "daemon",
                    'daemon=~"object-expirer|container-reconciler|account-reaper"',
                ),
                "{{daemon}}",
            ),
        ),
    ),
)

_S3 = f'api="S3",{CLIENTS},{HERE}'
S3 = Dashboard(
    "s3",
    "Swift: S3",
    "Requests of the S3 API, and daemons that serve it.",
    (
        _stat(
            "Requests", "reqps", "Requests of clients to the S3 API.", _rate(f"{_REQUESTS}_count", "", _S3)
        ),
        _stat(
            *("Server errors", "percentunit", "Share of S3 requests with a status of 500 or more."),
            _share(
                _rate(f"{_REQUESTS}_count", "", f'{_S3},status=~"5.."'), _rate(f"{_REQUESTS}_count", "", _S3)
            ),
            0.01,
        ),
        _stat(
            *("Refused signatures", "percentunit", "Share of S3 requests with the status 403."),
            _share(
                _rate(f"{_REQUESTS}_count", "", f'{_S3},status="403"'), _rate(f"{_REQUESTS}_count", "", _S3)
            ),
        ),
        _stat(
            *("Share of all requests", "percentunit", "S3 among all requests of clients."),
            f"{_rate(f'{_REQUESTS}_count', '', _S3)}"
            f" / {_rate(f'{_REQUESTS}_count', '', f'{CLIENTS},{HERE}')}",
        ),
        _graph(
            *("Requests by method", "reqps", "Requests of clients to the S3 API."),
            (_rate(f"{_REQUESTS}_count", "method", _S3), "{{method}}"),
        ),
        _graph(
            *("Requests by status", "reqps", "503 asks clients to slow down."),
            (_rate(f"{_REQUESTS}_count", "status", _S3), "{{status}}"),
        ),
        _graph("Latency", "s", "From the request's head to the response's end.", *_latencies(_S3)),
        _graph(
            *("Latency p99 by method", "s", "HEAD has no body; POST completes multipart uploads."),
            (_quantile(0.99, _REQUESTS, "method", _S3), "{{method}}"),
        ),
        _graph(
            *("Age of the last pass", "s", "Lifecycles, inventories and notifications."),
            (_AGE.format(matchers='{daemon=~"s3-.*"}'), "{{daemon}}"),
        ),
        _graph(
            *("Units of work", "ops", "Buckets and messages that passes complete."),
            (_rate("swift_daemon_units_total", "daemon", 'daemon=~"s3-.*"'), "{{daemon}}"),
        ),
    ),
    f"{_REQUESTS}_count",
)


def _hit_rate(by: str, matchers: str) -> str:
    hits = _rate("swift_cache_tier_hits_total", by, matchers)
    return f"{hits} / ({hits} + {_rate('swift_cache_tier_misses_total', by, matchers)})"


CACHE = Dashboard(
    "cache-tier",
    "Swift: cache tier",
    "Hits, writes and health of the SSD cache of object servers.",
    (
        _graph(
            *("Hit rate by class", "percentunit", "Look-ups that the tier answers."),
            (_hit_rate("class", HERE), "{{class}}"),
        ),
        _graph(
            *("Metadata hit rate by device", "percentunit", "A cold device needs swift-cache warm."),
            (_hit_rate("device", f'class="metadata",{HERE}'), "{{device}}"),
        ),
        _graph(
            *("Look-ups by class", "ops", "Hits and misses."),
            (
                f"{_rate('swift_cache_tier_hits_total', 'class', HERE)}"
                f" + {_rate('swift_cache_tier_misses_total', 'class', HERE)}",
                "{{class}}",
            ),
        ),
        _graph(
            *("Entries kept and rejected", "ops", "Rejected: read, but not worth a place."),
            *(
                (_rate(f"swift_cache_tier_{name}_total", "class", HERE), f"{{{{class}}}} {name}")
                for name in ("kept", "rejected")
            ),
        ),
        _graph(
            *("Entries dropped and compared", "ops", "Dropped to make room; unproven: compared first."),
            *(
                (_rate(f"swift_cache_tier_{name}_total", "class", HERE), f"{{{{class}}}} {name}")
                for name in ("dropped", "unproven")
            ),
        ),
        _graph(
            *("Differences from the disk", "short", "Must be 0; please report any other value."),
            (f"sum by (instance) (swift_cache_tier_differences_total{{{HERE}}})", "{{instance}}"),
        ),
        _graph(
            *("Processes with the tier", "short", "Processes that can use the tier; fewer: see their logs."),
            (f"sum by (instance) (swift_cache_tier_up{{{HERE}}})", "{{instance}}"),
        ),
    ),
    "swift_cache_tier_up",
)

DASHBOARDS = (OVERVIEW, PROXY, STORAGE, REPLICATION, DATABASES, S3, CACHE)
