"""``main`` of every WSGI server: configuration, privileges, socket, workers.

Spec: cli-and-config.md §8. The workers themselves are ``runtime.workers``, serving is ``runtime.httpd``.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import signal
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from socket import socket
from typing import Any

from swift import green
from swift.base.errors import ConfigError, SwiftError
from swift.compose import CONSOLE_KEY, PROCESS_KEY, Cluster, Process, cluster_of, start_tracing, telemetry_of
from swift.config.commandline import VERSION, CommandLine
from swift.config.common import PortSettings, PrioritySettings, ServerSettings
from swift.config.files import read_section
from swift.config.unknown import unknown_options
from swift.green import on_signals
from swift.platform import sockets
from swift.platform.heap import limit_heaps
from swift.platform.nativedisk import native_module
from swift.platform.privileges import drop_privileges
from swift.runtime.acceptshares import AcceptShares
from swift.runtime.httpd import HttpServer
from swift.runtime.metricspage import SharedMetricsPage
from swift.runtime.notify import READY, STOPPING, notify_systemd, refusal_message
from swift.runtime.pipeline import load_app, server_of
from swift.runtime.priority import set_priority
from swift.runtime.service.checks import machine_problems
from swift.runtime.service.handover import SocketHandover
from swift.runtime.service.listeners import Listeners, PerPortListeners, RingPortFinder, SharedListener
from swift.runtime.service.streams import detach_streams
from swift.runtime.workers import Master, ProcessRenewal, adopt_previous
from swift.runtime.wsgi import handle_of_app
from swift.telemetry.telemetry import Telemetry
from swift.wire.http1 import HeadLimits

#: Header lines a request may have, as a multiple of the configured header count.
HEADER_LINES_FACTOR = 1.6
#: Readers of the metrics page that the kernel may queue.
METRICS_BACKLOG = 16
#: Threads switch this often, so that a finished disk call is noticed soon.
SWITCH_INTERVAL_S = 0.001
#: Allocations that start a collection of each generation.
COLLECTOR_THRESHOLDS = (20_000, 20, 50)
#: A former worker closes connections that were idle for so long, seconds.
PATIENCE_S = 5.0
_PRIVILEGED_PORTS = 1024
NO_RELOAD = "a server without workers (workers = 0) cannot be reloaded; restart it"
_WORKER_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)


def bind(
    settings: ServerSettings,
    listen: Callable[..., socket] = sockets.listen,
    warn: Callable[[str], None] = lambda _text: None,
) -> socket:
    """Return the listening socket; tries until ``bind_timeout`` while the address is taken."""
    deadline = time.monotonic() + settings.bind_timeout
    address = f"{settings.bind_ip}:{settings.bind_port}"
    is_warned = False
    while True:
        try:
            return listen(
                settings.bind_ip, settings.bind_port, settings.backlog, keep_idle_s=settings.keep_idle
            )
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= deadline:
                raise ConfigError(f"cannot listen on {address}: {_listen_flaw(settings.bind_port, error)}")
            if not is_warned:
                warn(f"{address} is in use by another process; trying for {settings.bind_timeout:g} s")
                is_warned = True
            time.sleep(0.1)


def _listen_flaw(port: int, error: OSError) -> str:
    if isinstance(error, PermissionError) and port < _PRIVILEGED_PORTS:
        return f"{error.strerror}: ports below {_PRIVILEGED_PORTS} are for root"
    return error.strerror or str(error)


def bind_metrics(
    settings: ServerSettings, telemetry: Telemetry, listen: Callable[..., socket] = sockets.listen
) -> socket | None:
    """Return the socket of the metrics page.

    None without a page, or when the port is taken, which does not stop the server.
    """
    port = settings.metrics_port
    if not settings.metrics_path or not port:
        return None
    try:
        return listen(settings.metrics_bind_ip, port, METRICS_BACKLOG)
    except OSError as error:
        address = f"{settings.metrics_bind_ip}:{port}"
        telemetry.log.warning(f"no metrics page: cannot listen on {address}: {error.strerror}")
        return None


def _tls_context(settings: ServerSettings) -> ssl.SSLContext | None:
    if not settings.cert_file:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(settings.cert_file, settings.key_file or None)
    return context


def _freeze_garbage_collector() -> None:
    """Keep what was loaded out of the cycle collector, and let it look less often.

    A request makes hundreds of short-lived objects and hardly a cycle; walking all modules every few
    hundred allocations is wasted.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


class ServerProcess:
    """One configured server: everything until the workers run."""

    def __init__(self, conf_path: str, section: str, handover: SocketHandover, *, verbose: bool):
        self.conf_path = conf_path
        self._section = section
        if (server := server_of(conf_path)) not in ("", section):
            raise ConfigError(f"{conf_path} is the configuration of the {server}, not of the {section}")
        raw = read_section(conf_path, f"app:{section}")
        self.settings = ServerSettings.parse(raw, source=f"{conf_path} [DEFAULT]")
        self._ports = PortSettings.parse(raw, source=f"{conf_path} [DEFAULT]")
        self._by_ports = section == "object-server" and self._ports.servers_per_port > 0
        if not self.settings.bind_port and not self._by_ports:
            raise ConfigError(f"{conf_path}: option bind_port is required in [DEFAULT]")
        self.process = Process()
        self._extra: dict[str, Any] = {PROCESS_KEY: self.process}
        if verbose:
            self._extra[CONSOLE_KEY] = "true"
        self._verbose = verbose
        self.telemetry: Telemetry = telemetry_of({**raw, **self._extra}, name=section)
        self._raw = raw
        self.app: Any = None
        self._board = SharedMetricsPage(1)
        self._metrics_listener: socket | None = None
        self._handover = handover
        self._tls: ssl.SSLContext | None = None

    def load(self) -> None:
        """Build the pipeline and the TLS context once, before forking, so that errors show at the start."""
        for finding in self.findings():
            self.telemetry.log.warning(finding)
        self._tls = _tls_context(self.settings)
        start_tracing(self.process, self._raw, self.telemetry, section=self._section)
        self.app = load_app(self.conf_path, self._extra)

    def findings(self) -> Iterator[str]:
        """Yield what the files have that is not used, e.g. unknown options."""
        for path in self._configuration_files():
            yield from unknown_options(path)

    def test(self) -> int:
        """Print what is wrong or not used; return 0 if the server would start."""
        for finding in self.findings():
            print(f"warning: {finding}", file=sys.stderr)
        problems = [
            *self.process.problems,
            *machine_problems(self._section, self.conf_path, self.settings, listens=True),
        ]
        for problem in problems:
            print(problem, file=sys.stderr)
        return 1 if problems else 0

    def _cluster(self) -> Cluster:
        """Return the settings of swift.conf at the time the pipeline was made; raises ``ConfigError``."""
        return cluster_of({**self._raw, **self._extra})

    def _configuration_files(self) -> list[str]:
        """Return the files whose unknown options every server reports."""
        shared = (os.path.join(self.settings.swift_dir, name) for name in ("swift.conf", "memcache.conf"))
        return [self.conf_path, *filter(os.path.exists, shared)]

    def serve(self) -> int:
        """Bind, fork and serve until stopped; return the exit code."""
        handover, log = self._handover, self.telemetry.log
        listeners = self._listen()
        self._board = SharedMetricsPage(listeners.slots_max)
        self._shares = AcceptShares(listeners.slots_max)
        self._metrics_listener = bind_metrics(self.settings, self.telemetry, handover.listen)
        handover.close_unclaimed_sockets()
        set_priority(PrioritySettings.parse(self._raw, source=f"{self.conf_path} [DEFAULT]"))
        drop_privileges(self.settings.user)
        os.umask(0o022)
        limit_heaps()
        detach_streams(log, console=self._verbose)
        log.notice(f"Starting {os.getpid()}")
        if self.settings.workers == 0 and not self._by_ports:
            notify_systemd(READY)
            self._run_worker(listeners, 0)
            return 0
        code = Master(
            listeners.slots,
            lambda slot: self._run_worker(listeners, slot),
            log,
            succession=ProcessRenewal(
                lambda workers: handover.renew(workers, log, notify_systemd),
                handover.take_workers(),
                self.settings.stale_worker_timeout,
            ),
            on_ready=lambda: notify_systemd(READY),
            on_hangup=handover.stop_listening,
        ).run()
        notify_systemd(STOPPING)
        return code

    def _listen(self) -> Listeners:
        """Bind what can be bound while still privileged; raises ``ConfigError``."""
        settings, ports = self.settings, self._ports
        if not self._by_ports:
            listener = bind(settings, self._handover.listen, self._warn_at_start)
            return SharedListener(listener, settings.workers)
        finder = RingPortFinder(
            settings.swift_dir, self._cluster().policies, ports.ring_ip or settings.bind_ip
        )
        listeners = PerPortListeners(
            finder,
            lambda port: self._handover.listen(
                settings.bind_ip, port, settings.backlog, keep_idle_s=settings.keep_idle
            ),
            self.telemetry.log,
            per_port=ports.servers_per_port,
            interval_s=ports.ring_check_interval,
        )
        listeners.slots()
        return listeners

    def _warn_at_start(self, text: str) -> None:
        """Log a warning, and print it for the terminal or the journal of this start."""
        self.telemetry.log.warning(text)
        if not self._verbose:
            print(f"swift-{self._section}: {text}", file=sys.stderr, flush=True)

    def _run_worker(self, listeners: Listeners, index: int) -> None:
        listener = listeners.worker_socket(index)
        if listener is None:
            # Its port left the rings; the master starts no other one.
            return
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        _freeze_garbage_collector()
        settings = self.settings
        self._board.register_worker(index, self.process.metrics)
        limits = self._cluster().config.limits
        handle, tracing = handle_of_app(self.app), self.process.tracing
        server = HttpServer(
            handle if tracing is None else tracing.trace_requests(handle),
            self.telemetry,
            limits=HeadLimits(
                limits.max_request_line,
                limits.max_header_size,
                int(HEADER_LINES_FACTOR * limits.max_header_count),
            ),
            max_clients=settings.max_clients,
            client_timeout_s=settings.client_timeout,
            keepalive_timeout_s=(
                settings.client_timeout if settings.keepalive_timeout < 0 else settings.keepalive_timeout
            ),
            tls=self._tls,
            require_proxy_protocol=settings.require_proxy_protocol,
            trusted_proxies=settings.trusted_proxies,
            share=self._shares.register_worker(index, listeners.peers(index)),
        )
        stopped = green.Event()
        patient: list[int] = []
        on_signals(_WORKER_SIGNALS, lambda number: self._handle_signal(number, patient, stopped))
        green.spawn_detached(self._publish_metrics)
        if self._metrics_listener is not None:
            page = self._board.server(settings.metrics_path, self.telemetry.log)
            green.spawn_detached(page.serve, self._metrics_listener)
        green.spawn(server.serve, listener).on_exit(stopped.set)
        stopped.wait()
        if patient:
            server.stop(settings.stale_worker_timeout, idle_s=PATIENCE_S)
        else:
            server.stop()
        self._flush()

    def _handle_signal(self, number: int, patient: list[int], stopped: green.Event) -> None:
        if number == signal.SIGUSR1:
            self.telemetry.log.warning(NO_RELOAD)
            notify_systemd(refusal_message(NO_RELOAD))
            return
        if number == signal.SIGHUP:
            patient.append(number)
        stopped.set()

    def _publish_metrics(self) -> None:
        while True:
            green.sleep(1.0)
            self._board.publish()

    def _flush(self) -> None:
        for finish in self.process.at_exit:
            finish()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()


def make_parser(section: str) -> CommandLine:
    """Return the command line."""
    name = f"swift-{section}"
    parser = CommandLine(
        prog=name,
        description=f"Run the {section.replace('-', ' ')} in the foreground.",
        epilog=f"example: {name} /etc/swift/{section}.conf -v",
        version=f"{VERSION}, {'with' if native_module() else 'without'} native disk calls",
    )
    parser.add_argument("config", nargs="?", help="configuration file or directory")
    parser.add_argument("-v", "--verbose", action="store_true", help="log to the console")
    parser.add_argument("-t", "--test-config", action="store_true", help="check the configuration and exit")
    parser.add_argument("words", nargs="*", help="'verbose' is accepted as a bare word")
    return parser


def run_server(section: str, argv: Sequence[str] | None = None) -> int:
    """Run a server from its command line; ``section`` is its app's name, e.g. ``proxy-server``."""
    parser = make_parser(section)
    args = parser.parse_args(argv)
    parser.check_words(args.words, ("verbose", "once"))
    if not args.config:
        parser.print_usage()
        print("Error: missing config path argument")
        return 1
    handover = SocketHandover()
    if not os.path.exists(args.config) and not handover.workers:
        parser.print_usage()
        print(f"Error: unable to locate {args.config}")
        return 1
    os.environ["TZ"] = "UTC"
    time.tzset()
    verbose = args.verbose or "verbose" in args.words
    try:
        server = ServerProcess(args.config, section, handover, verbose=verbose)
        server.load()
        if args.test_config:
            return server.test()
        return server.serve()
    except Exception as error:
        if handover.workers:
            return _adopt_previous_workers(section, handover, error, verbose=verbose)
        if not isinstance(error, (SwiftError, OSError)):
            raise
        print(f"swift-{section}: {error}", file=sys.stderr)
        return 1


def _adopt_previous_workers(
    section: str, handover: SocketHandover, error: Exception, *, verbose: bool
) -> int:
    """Keep supervising the workers from before a reload, because the new image cannot start."""
    log = telemetry_of({CONSOLE_KEY: "true"} if verbose else {}, name=section).log
    if isinstance(error, (SwiftError, OSError)):
        log.error(f"reload failed; the old workers continue; send SIGUSR1 to try again: {error}")
    else:
        log.exception("reload failed; the old workers continue; send SIGUSR1 to try again", error)
    notify_systemd(refusal_message(str(error) or repr(error)))
    return adopt_previous(
        ProcessRenewal(lambda workers: handover.renew(workers, log, notify_systemd), handover.take_workers()),
        log,
        on_hangup=handover.stop_listening,
    )
