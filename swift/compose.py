"""The composition root: from configuration text to the values that services are made of.

Services never read configuration or make their own clock, transport or log; they are handed what this
file builds. PasteDeploy factories call ``backend_context`` or ``cluster_of`` and pass the result on.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from swift import green
from swift.base.errors import ConfigError
from swift.base.extras import install_command
from swift.base.truth import is_true
from swift.cluster.health import NodeHealth
from swift.cluster.localreads import LocalEndpoint, LocalReads
from swift.cluster.serverauth import SecretError, ServerSecrets, Signer
from swift.cluster.transport import Transport
from swift.config.cluster import SERVERS_SECTION, ClusterConfig, read_cluster_config
from swift.config.common import (
    AccessLineSettings,
    LogSettings,
    PortSettings,
    ServerSettings,
    StorageSettings,
    TraceSettings,
)
from swift.config.files import parser_of
from swift.config.schema import Conf, Settings
from swift.gateway.internal_client import InternalClient
from swift.http.request import Request
from swift.http.response import Response
from swift.platform.addresses import matches_any_address, own_addresses
from swift.platform.devices import Devices
from swift.policy.policy import Policies
from swift.runtime.backendapp import ACCESS_FIELDS, BackendApp, BackendContext, DateLimit, RingPartitions
from swift.runtime.declaration import DaemonParts
from swift.runtime.deviceidentity import FINGERPRINT_FILE, DeviceIdentity
from swift.runtime.diskcalls import DiskThreadPools
from swift.runtime.layoutpages import LayoutPages
from swift.runtime.pipeline import load_app, read_pipeline
from swift.runtime.serverguard import AuthCounts, OwnHosts, ServerGuard, SharedNonces
from swift.runtime.wsgi import handle_of_app
from swift.telemetry.accesslog import AccessLog
from swift.telemetry.console import STDERR, has_timestamps
from swift.telemetry.devicefaults import CallLater, DeviceFaults, never_flush
from swift.telemetry.inforegistry import InfoRegistry
from swift.telemetry.log import make_log
from swift.telemetry.logtemplate import Anonymizer, LogTemplate
from swift.telemetry.metrics import Registry
from swift.telemetry.recon import ReconFile
from swift.telemetry.statsd import Statsd
from swift.telemetry.telemetry import Telemetry

if TYPE_CHECKING:
    from swift.runtime.tracing import Tracing

_Settings = TypeVar("_Settings", bound=Settings)

#: The key by which the executables tell the factories to log to standard error.
CONSOLE_KEY = "log_to_console"
#: The key under which the executables hand a ``Process`` to the factories.
PROCESS_KEY = "swift.process"

SWIFT_DIR = "/etc/swift"
#: Directory in memory of the nonces that the servers of a machine share.
NONCES_DIRECTORY = "/dev/shm"
#: Threads per device of a daemon: enough that a slow directory does not hold up deliveries.
DAEMON_DISK_THREADS = 2


@dataclass
class Process:
    """Objects that all filters and the app of one pipeline share."""

    metrics: Registry = field(default_factory=Registry)
    info: InfoRegistry = field(default_factory=InfoRegistry)
    #: Functions that run before a worker ends, e.g. write the last lines of an access log.
    at_exit: list[Callable[[], None]] = field(default_factory=list)
    #: The parsed swift.conf of each directory; each is read once.
    clusters: dict[str, Cluster] = field(default_factory=dict)
    #: The secrets of the servers of each directory.
    server_secrets: dict[str, ServerSecrets] = field(default_factory=dict)
    #: Why a running server is better than this one, e.g. a ring that cannot be read: no reload then.
    problems: list[str] = field(default_factory=list)
    #: Traces; None where they are not configured.
    tracing: Tracing | None = None
    #: The health of the nodes, as a proxy knows it.
    node_health: NodeHealth | None = None
    #: False where requests for other machines must not wait for a device of this one: its calls need threads.
    calls_disks_inline: bool = True


def process_of(conf: Conf) -> Process:
    """Return the shared ``Process`` of a pipeline; a fresh one when a plain PasteDeploy loader is at work."""
    process = conf.get(PROCESS_KEY)
    return process if isinstance(process, Process) else Process()


@dataclass(frozen=True)
class Cluster:
    """Parsed swift.conf."""

    config: ClusterConfig
    policies: Policies


def merged(global_conf: Conf, local_conf: Conf) -> dict[str, str]:
    """Return a section's options over ``[DEFAULT]``, as PasteDeploy hands them to factories."""
    return {**global_conf, **local_conf}


def cluster_of(conf: Conf) -> Cluster:
    """Read ``<swift_dir>/swift.conf``, once for all parts of a pipeline; raises ``ConfigError``."""
    folder = conf.get("swift_dir", SWIFT_DIR)
    known = process_of(conf).clusters
    if folder not in known:
        path = os.path.join(folder, "swift.conf")
        config = read_cluster_config(path)
        known[folder] = Cluster(config, Policies.parse(config.sections, source=path))
    return known[folder]


def telemetry_of(conf: Conf, *, name: str) -> Telemetry:
    """Log, statsd and metrics for a service called ``name`` in metrics."""
    settings = LogSettings.parse(conf)
    label = conf.get("log_name", name)
    log = make_log(settings, console=is_true(conf.get(CONSOLE_KEY)), name=label, conf=conf)
    return Telemetry(log, Statsd(settings, name, _user_labels(conf)), process_of(conf).metrics)


class Services:
    """Services of the process for its filters, which read no configuration themselves."""

    def __init__(self, process: Process, conf: Conf, name: str):
        self._process = process
        self._name = name
        #: The options of its section over those of ``[DEFAULT]``, as text.
        self.conf = conf
        self.swift_dir = conf.get("swift_dir", SWIFT_DIR)

    @classmethod
    def of(cls, conf: Conf, name: str) -> Services:
        """Return those of the filter ``name`` whose options PasteDeploy hands over."""
        options = {key: value for key, value in conf.items() if key != PROCESS_KEY}
        return cls(process_of(conf), options, name)

    def __repr__(self) -> str:
        return f"Services({self._name!r})"

    @property
    def info(self) -> InfoRegistry:
        """The facts of ``/info``; those of filters right of this one are there already."""
        return self._process.info

    @property
    def node_health(self) -> NodeHealth | None:
        """The health of the nodes, as the proxy right of all filters knows it."""
        return self._process.node_health

    @property
    def cluster(self) -> Cluster:
        """Return the parsed swift.conf; raises ``ConfigError``."""
        return cluster_of(self._shared(self.conf))

    def server_auth(self) -> dict[str, object]:
        """Return the mode of the authentication of servers, and the ids of the secrets in use."""
        ids = [
            key_id for secrets in self._process.server_secrets.values() for key_id in secrets.current().by_id
        ]
        return {"mode": self.cluster.config.server_auth.mode, "key_ids": ids}

    def telemetry(self, name: str = "", conf: Conf | None = None) -> Telemetry:
        """Return log, statsd and metrics, by the filter's name and section unless others are given."""
        chosen = self.conf if conf is None else conf
        return telemetry_of(self._shared(chosen), name=name or self._name.replace("_", "-"))

    def access_log(self, conf: Conf, telemetry: Telemetry, *, name: str) -> AccessLog:
        """Return where the access lines go that the options ``conf`` describe."""
        return access_log_of(self._shared(conf), telemetry, name=name)

    def at_exit(self, finish: Callable[[], None]) -> None:
        """Have ``finish`` called before a worker ends."""
        self._process.at_exit.append(finish)

    def _shared(self, conf: Conf) -> Conf:
        shared: dict[str, Any] = {**conf, PROCESS_KEY: self._process}
        return shared


def _user_labels(conf: Conf) -> dict[str, str]:
    """Return the labels that the operator adds to metrics; raises ``ConfigError`` for a bad name."""
    labels = {}
    for option, value in conf.items():
        name = option.removeprefix("statsd_user_label_")
        if name == option:
            continue
        if not re.fullmatch(r"\w+", name, re.ASCII):
            raise ConfigError(f"option {option}: a label's name has letters, digits and _ only")
        labels[f"user_{name}"] = value
    return labels


def access_log_of(conf: Conf, telemetry: Telemetry, *, name: str) -> AccessLog:
    """Return the access log of a service."""
    fd = STDERR if is_true(conf.get(CONSOLE_KEY)) else None
    log = AccessLog(
        telemetry.log,
        fd=fd,
        name=conf.get("log_name", name),
        schedule=green.spawn_after,
        now=time.time if has_timestamps(STDERR) else None,
    )
    process_of(conf).at_exit.append(log.flush)
    return log


def start_tracing(process: Process, conf: Conf, telemetry: Telemetry, *, section: str) -> None:
    """Give a server's process traces if its options say so; raises ``ConfigError``."""
    settings = TraceSettings.parse(conf, source="[DEFAULT]")
    if not settings.trace_exporter_url:
        return
    try:
        from swift.runtime.tracing import make_tracing
    except ImportError as error:
        raise ConfigError(
            f"option trace_exporter_url needs more packages ({install_command('opentelemetry')}): {error}"
        )
    process.tracing, finish = make_tracing(settings, section, telemetry)
    process.at_exit.append(finish)


def transport_of(conf: Conf, telemetry: Telemetry) -> Transport:
    """Return the connections to nodes of a server, with spans if its process has traces."""
    return traced(conf, connections_to_nodes(conf, telemetry))


def connections_to_nodes(
    conf: Conf, telemetry: Telemetry, is_only_server: Callable[[str, int], bool] = lambda _ip, _port: False
) -> Transport:
    """Return connections to nodes, whose requests are signed; raises ``ConfigError``.

    See ``ConnectionPool`` for ``is_only_server``.
    """
    from swift.cluster.exchange import HttpTransport
    from swift.cluster.pool import ConnectionPool

    pool = ConnectionPool(telemetry.metrics, is_only_server=is_only_server)
    return HttpTransport(pool, Signer(server_secrets_of(conf, telemetry)))


def server_secrets_of(conf: Conf, telemetry: Telemetry) -> ServerSecrets:
    """Return the secrets that sign requests between servers, one object for all parts of a process.

    Without the file there are none. Raises ``ConfigError`` if a file cannot be used, or if swift.conf demands
    signatures and it is missing.
    """
    config = cluster_of(conf).config
    known = process_of(conf).server_secrets
    secrets = known.get(config.secret_path)
    if secrets is None:
        secrets = ServerSecrets(config.secret_path, report=telemetry.log.error)
        if config.server_auth.mode != "off" or os.path.lexists(config.secret_path):
            try:
                secrets.load()
            except SecretError as error:
                raise ConfigError(f"[{SERVERS_SECTION}] mode = {config.server_auth.mode}: {error}")
        known[config.secret_path] = secrets
    return secrets


def _guard_of(
    conf: Conf, telemetry: Telemetry, storage: StorageSettings, server_type: str
) -> ServerGuard | None:
    """Return the rule for requests without a signature; None where swift.conf does not demand any."""
    settings = cluster_of(conf).config.server_auth
    if settings.mode == "off":
        return None
    server, ports = ServerSettings.parse(conf), PortSettings.parse(conf)
    counts = AuthCounts(
        ReconFile(storage.recon_cache_path, server_type, telemetry.log), later=green.spawn_after
    )
    process_of(conf).at_exit.append(counts.flush)
    return ServerGuard(
        server_type,
        settings,
        server_secrets_of(conf, telemetry),
        SharedNonces(NONCES_DIRECTORY, settings.window, telemetry.log.error),
        # All ports of one server share its nonces.
        OwnHosts(
            partial(_server_addresses, server.bind_ip, storage.ring_ip),
            0 if ports.servers_per_port else server.bind_port,
        ),
        telemetry,
        counts,
    )


def _server_addresses(bind_ip: str, ring_ip: str) -> frozenset[str]:
    """Return the addresses by which requests reach a server."""
    found = own_addresses(bind_ip)
    return found | own_addresses(ring_ip) if ring_ip else found


def traced(conf: Conf, transport: Transport) -> Transport:
    """Return ``transport`` with a span for each exchange if the process has traces."""
    tracing = process_of(conf).tracing
    return transport if tracing is None else tracing.trace_exchanges(transport)


#: Filters of an object server that change nothing about reads of objects.
_NEUTRAL_FILTERS = frozenset(("healthcheck", "recon"))


def local_reads_of(
    paths: Sequence[str], network: Transport, conf: Conf, telemetry: Telemetry
) -> LocalReads | None:
    """Return a transport that reads the devices of this machine's object servers in this process.

    ``paths`` are their configuration files. None, with a warning, when one has a filter that such reads would
    pass by. Raises ``ConfigError`` naming the file.
    """
    process = process_of(conf)
    # Their metrics and ends are those of this process.
    shared = Process(metrics=process.metrics, at_exit=process.at_exit, calls_disks_inline=False)
    given: dict[str, object] = {PROCESS_KEY: shared}
    given.update({key: conf[key] for key in ("swift_dir", CONSOLE_KEY) if key in conf})
    endpoints = []
    for path in paths:
        pipeline = read_pipeline(path, given)
        if pipeline.app.entry_point_name != "object":
            raise ConfigError(f"{path}: option local_reads is for configurations of object servers")
        others = [name for name in pipeline.names if name not in _NEUTRAL_FILTERS]
        if others:
            telemetry.log.warning(
                f"local_reads is off: reads in the proxy would pass by {', '.join(others)} of {path}"
            )
            return None
        options = pipeline.app.global_conf
        server = ServerSettings.parse(options, source=path)
        ports = PortSettings.parse(options, source=path)
        address = ports.ring_ip or server.bind_ip
        port = 0 if ports.servers_per_port else server.bind_port
        try:
            app = pipeline.create_app()
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}")
        if not isinstance(app, BackendApp):
            raise ConfigError(f"{path}: option local_reads is for object servers of this distribution")
        endpoints.append(LocalEndpoint(partial(_is_own_address, address), port, app))
    return LocalReads(network, endpoints, telemetry.metrics)


def _is_own_address(own: str, ip: str) -> bool:
    """Return True if an address of a ring means this machine, which rings know as ``own``."""
    return matches_any_address(ip, own_addresses(own))


def backend_context(
    global_conf: Conf,
    local_conf: Conf,
    *,
    server_type: str,
    settings_class: type[_Settings],
) -> tuple[BackendContext, _Settings]:
    """Return the context and the parsed settings of a storage server.

    ``settings_class`` holds the options of the app section. Raises ``ConfigError``.
    """
    conf = merged(global_conf, local_conf)
    name = f"{server_type}-server"
    telemetry = telemetry_of(conf, name=name)
    cluster = cluster_of(conf)
    storage = StorageSettings.parse(conf)
    lines = AccessLineSettings.parse(conf, source=f"[app:{name}]")
    settings = settings_class.parse(conf, source=f"[app:{name}]")
    telemetry.faults = _faults_of(telemetry, storage, server_type, later=green.spawn_after)
    process_of(conf).at_exit.append(telemetry.faults.flush)
    context = BackendContext(
        devices=_devices_of(storage, cluster, telemetry),
        hasher=cluster.config.hasher,
        limits=cluster.config.limits,
        policies=cluster.policies,
        telemetry=telemetry,
        transport=transport_of(conf, telemetry),
        pools=_pools_of(conf, getattr(settings, "threads_per_disk", 4)),
        access_log=access_log_of(conf, telemetry, name=name) if lines.log_requests else None,
        access_template=_access_template(lines),
        replication_server=storage.replication_server,
        partitions=RingPartitions(conf.get("swift_dir", SWIFT_DIR)),
        layout=LayoutPages(conf.get("swift_dir", SWIFT_DIR)),
        dates=DateLimit(storage.timestamp_ahead_max, storage.timestamp_ahead_exempt),
        guard=_guard_of(conf, telemetry, storage, server_type),
    )
    return context, settings


def _pools_of(conf: Conf, threads_per_disk: int) -> DiskThreadPools:
    if process_of(conf).calls_disks_inline:
        return DiskThreadPools(threads_per_disk, quick=True)
    return DiskThreadPools(max(threads_per_disk, 1))


def daemon_context(conf: Conf, *, name: str) -> BackendContext:
    """Return the context of a storage node's daemon; ``conf`` is its section over ``[DEFAULT]``.

    ``name`` is the daemon's, e.g. ``object-updater``. Raises ``ConfigError``.
    """
    telemetry = telemetry_of(conf, name=name)
    cluster = cluster_of(conf)
    storage = StorageSettings.parse(conf)
    server = ServerSettings.parse(conf)
    telemetry.faults = _faults_of(telemetry, storage, name.partition("-")[0])
    return BackendContext(
        devices=_devices_of(storage, cluster, telemetry),
        hasher=cluster.config.hasher,
        limits=cluster.config.limits,
        policies=cluster.policies,
        telemetry=telemetry,
        transport=connections_to_nodes(conf, telemetry),
        pools=DiskThreadPools(DAEMON_DISK_THREADS),
        ring_ip=storage.ring_ip or server.bind_ip,
        ring_port=server.bind_port,
    )


def _devices_of(storage: StorageSettings, cluster: Cluster, telemetry: Telemetry) -> Devices:
    """Return the node's devices, those of another cluster left out; raises ``ConfigError`` when all are."""
    identity = DeviceIdentity(cluster.config.hasher, warn=telemetry.log.error)

    def admit(device: str, path: str) -> None:
        identity.check_new_device(device, path)
        # A replaced device has a new fingerprint: errors before it were those of another one.
        with contextlib.suppress(OSError):
            telemetry.faults.mend(device, os.stat(f"{path}/{FINGERPRINT_FILE}").st_mtime)

    devices = Devices(
        storage.devices,
        mount_check=storage.mount_check,
        admit=admit,
        returned=telemetry.faults.mend,
    )
    identity.check_all(devices)
    return devices


def _faults_of(
    telemetry: Telemetry, storage: StorageSettings, server_type: str, *, later: CallLater = never_flush
) -> DeviceFaults:
    """Return the counts of device errors, kept in the recon file of a server type."""
    recon = ReconFile(storage.recon_cache_path, server_type, telemetry.log)
    return DeviceFaults(telemetry.metrics, recon, later=later)


def internal_client(
    path: str,
    agent: str,
    *,
    process: Process | None = None,
    tries: int = 3,
    timeout_s: float | None = None,
    use_replication_network: bool = False,
    must_decrypt: bool = False,
    swift_dir: str = "",
) -> InternalClient:
    """Return a client over the pipeline of an ``internal-client.conf``, in which nothing is inserted.

    The arguments are those of ``InternalClient``; ``process`` shares metrics with the caller's, and
    ``swift_dir`` replaces the file's. Raises ``ConfigError`` naming the file.
    """
    given: dict[str, Any] = {PROCESS_KEY: process or Process()}
    if swift_dir:
        given["swift_dir"] = swift_dir
    app = load_app(path, given, modify=False)
    return InternalClient(
        handle_of_app(app),
        agent,
        tries=tries,
        timeout_s=timeout_s,
        use_replication_network=use_replication_network,
        must_decrypt=must_decrypt,
    )


def internal_pipeline(path: str) -> Callable[[Request], Response]:
    """Return what sends requests to the pipeline of an ``internal-client.conf``; raises ``ConfigError``."""
    return handle_of_app(load_app(path, {PROCESS_KEY: Process()}, modify=False))


def own_client(parts: DaemonParts, name: str, conf_path: str, tries: int) -> InternalClient | None:
    """Return the client of a daemon whose own file has its pipeline, unless ``conf_path`` names another.

    It answers with no object that its pipeline cannot decrypt. None, with a warning, when the file is that of
    a container server, whose pipeline is none for a client.
    """
    if not conf_path and parser_of(parts.conf_path).has_section("app:container-server"):
        parts.context.telemetry.log.warning(
            f"{parts.conf_path} [{name}]: the daemon stays idle because internal_client_conf_path is not set"
        )
        return None
    path = conf_path or parts.conf_path
    return internal_client(path, name, tries=tries, use_replication_network=True, must_decrypt=True)


def _access_template(settings: AccessLineSettings) -> LogTemplate | None:
    """Return the operator's format of access lines; raises ``ConfigError``."""
    if not settings.log_format:
        return None
    return LogTemplate(
        settings.log_format,
        ACCESS_FIELDS,
        option="log_format",
        anonymize=Anonymizer(settings.log_anonymization_method, settings.log_anonymization_salt),
    )
