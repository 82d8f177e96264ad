"""The daemon of the layout controller: its settings, and a decision every few seconds."""

from __future__ import annotations

import secrets
import shlex
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass

from swift.base.entity import EntityPath
from swift.base.errors import ConfigError, SwiftError
from swift.compose import cluster_of, internal_pipeline
from swift.config.files import parser_of
from swift.config.kinds import COUNT, NUMBER, SECONDS, choice
from swift.config.schema import Settings, option
from swift.gateway.documents import document_client
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.layout.controller import Controller, Pace
from swift.layout.dead import DrainPolicy
from swift.layout.observation import HealthObserver
from swift.layout.publishing import LocalPublisher
from swift.layout.seal import StateSeal
from swift.layout.state import DRY_RUN, OFF, ON, LayoutState, RingState
from swift.layout.store import ACCOUNT, AGENT, ClusterLayoutStore, LeaseKeeper, NoLayout
from swift.operations.health.reader import HealthReader
from swift.operations.recon.client import ReconClient
from swift.runtime import childprocess
from swift.runtime.daemon import DaemonTask, PassContext, PassReport, Schedule
from swift.runtime.declaration import Daemon, DaemonParts
from swift.runtime.queuetask import QueueTask
from swift.telemetry.metrics import GaugeMetric
from swift.telemetry.telemetry import Telemetry

NAME = "layout-controller"
#: Its key in the recon file of object servers.
CONTROLLER_KEY = "layout_controller"
#: Decisions of which one looks at a cluster whose layout is at rest.
_REST_TICKS = 4
#: Requests of which the slowest is the latency of a moment, and their bytes.
_PROBES, _PROBE_BYTES = 5, 4096
#: Time limit of the command that takes rings to other nodes.
_COMMAND_S = 300.0
_MOVES = GaugeMetric(
    "swift_layout_moves",
    "Copies of a ring's change: all, arrived, moving.",
    ("ring", "state"),
)
_LEFT = GaugeMetric(
    "swift_layout_left_seconds", "Duration of the change under way from now on; 0: unknown, or none.", ()
)


@dataclass(frozen=True)
class LayoutControllerSettings(Settings):
    """The pace of a layout, and the rules for devices that are away."""

    interval: float = option(15.0, "Seconds from one decision to the next.", kind=SECONDS)
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)
    lease_seconds: float = option(
        60.0, "Seconds after which another controller takes over from one that is gone.", kind=SECONDS
    )
    step_percent: float = option(
        5.0, "Percent of a ring's copies that move in one step at most.", kind=NUMBER
    )
    bytes_per_second: float = option(
        0.0, "Bytes a second that move in the cluster on average at most; 0: no limit.", kind=NUMBER
    )
    latency_budget: float = option(
        0.0,
        "Seconds that a small request may take; while they take longer no step begins, and the next ones are "
        "smaller. 0: no limit.",
        kind=SECONDS,
    )
    full_percent: float = option(
        90.0, "Percent of a device's space from which on it gets no further copies.", kind=NUMBER
    )
    auto_drain: str = option(
        DRY_RUN,
        "What happens to devices that are away for long: off, dry-run (it is only announced) or on.",
        kind=choice(OFF, DRY_RUN, ON),
    )
    dead_after: float = option(
        3600.0,
        "Seconds after which a device that is away is drained; after half of it that is announced.",
        kind=SECONDS,
    )
    dead_devices_max: int = option(
        12, "Devices that are drained by themselves at the same time at most, all in one zone.", kind=COUNT
    )
    publish_command: str = option(
        "",
        "Command that takes rings to nodes without an agent, such as those of OpenStack Swift. It is run "
        "with the directory of the rings as its last argument after each change of them, again until it "
        "ends with 0.",
        sample="",
    )
    recon_timeout: float = option(5.0, "Seconds to wait for the report of a server.", kind=SECONDS)
    internal_client_conf_path: str = option(
        "",
        "Configuration of the pipeline that keeps the layout; empty: the pipeline of this file, or "
        "internal-client.conf beside the rings if this file is that of another server.",
        sample="",
    )

    @property
    def schedule(self) -> Schedule:
        """The schedule for the runner."""
        return Schedule(self.interval, report_interval_s=self.report_interval)

    @property
    def pace(self) -> Pace:
        """The bounds of steps."""
        return Pace(self.step_percent, self.bytes_per_second, self.latency_budget, self.full_percent)

    @property
    def drain(self) -> DrainPolicy:
        """The rules for devices that are away."""
        return DrainPolicy(self.auto_drain, self.dead_after, self.dead_devices_max)


class StoredProbe:
    """Measures the time of small requests to objects, as clients send them."""

    def __init__(self, client: InternalClient):
        self._client = client

    def measure_s(self) -> float:
        """Return the seconds of the slowest of a few PUTs and GETs; 0 if one failed."""
        slowest_s = 0.0
        path = EntityPath(ACCOUNT, "state", "probe")
        try:
            for _ in range(_PROBES):
                began = time.monotonic()
                self._client.put(path, bytes(_PROBE_BYTES))
                with self._client.get(path) as response:
                    response.read_body(_PROBE_BYTES)
                slowest_s = max(slowest_s, (time.monotonic() - began) / 2)
        except UnexpectedResponse:
            return 0.0
        return slowest_s


class PublishCommand:
    """Runs the command of an operator for each version of the rings, until it ends with 0."""

    def __init__(self, command: str, swift_dir: str, telemetry: Telemetry, *, timeout_s: float = _COMMAND_S):
        """Raise ValueError for a command with an open quote."""
        self._words = shlex.split(command)
        self._swift_dir = swift_dir
        self._telemetry = telemetry
        self._timeout_s = timeout_s
        self._version = 0

    def run(self, version: int) -> None:
        """Run it unless it has taken the rings of this version; a failure is logged."""
        if not self._words or version == self._version:
            return
        try:
            done = childprocess.run([*self._words, self._swift_dir], timeout_s=self._timeout_s)
        except (OSError, SwiftError) as error:
            self._telemetry.log.error(f"publish_command did not run: {error}")
            return
        if done.status:
            last = "; ".join(done.output.strip().splitlines()[-1:]) or "no output"
            self._telemetry.log.error(f"publish_command ended with status {done.status}: {last}")
            return
        self._version = version


class LayoutControllerTask(QueueTask):
    """The task: one decision is a pass."""

    name = NAME
    share = "layout"

    def __init__(self, controller: Controller, telemetry: Telemetry, command: PublishCommand):
        self._controller = controller
        self._telemetry = telemetry
        self._command = command
        self.text = ""
        self.state: LayoutState | None = None
        #: False while another controller has the lease.
        self.leads = False

    def begin(self, _share: str, context: PassContext) -> ControllerPass:
        """Return a pass."""
        return ControllerPass(self, context)

    def decide(self) -> None:
        """Make one decision; raise ``SwiftError`` and OSError."""
        try:
            outcome = self._controller.tick()
        except NoLayout as error:
            self.text = str(error)
            return
        except (SwiftError, OSError) as error:
            self.text, self.leads = str(error), False
            raise
        if outcome.text != self.text:
            self._telemetry.log.info(outcome.text)
        self.text, self.state = outcome.text, outcome.state or self.state
        self.leads = outcome.state is not None
        if self.state is not None:
            self._publish(self.state)
            if outcome.state is not None:
                self._command.run(outcome.state.version)

    def _publish(self, state: LayoutState) -> None:
        metrics = self._telemetry.metrics
        for name, ring in state.rings.items():
            for label, count in _moves_of(ring).items():
                _MOVES.of(metrics, ring=name, state=label).set(count)
        _LEFT.of(metrics).set(state.left_s(time.time()))

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return the recon facts: the last decision, and how far the layout is."""
        state, facts = self.state, {"said": self.text, "last": passed.ended_s, "leads": self.leads}
        if state is not None:
            running = [change.text for change in state.changes if change.state == "running"]
            facts |= {
                "version": state.version,
                "change": "; ".join(running),
                "left_s": state.left_s(passed.ended_s),
                "paused": state.paused,
                "away": sorted(state.dead),
                "rings": {name: _moves_of(ring) for name, ring in state.rings.items()},
            }
        return {CONTROLLER_KEY: facts}


def _moves_of(ring: RingState) -> dict[str, int]:
    """Return the copies of a ring's change, as metrics and recon have them."""
    return {"all": ring.moves_total, "arrived": ring.moves_done, "moving": ring.moves_now}


class ControllerPass:
    """One decision."""

    def __init__(self, task: LayoutControllerTask, context: PassContext):
        self._task = task
        self._context = context

    def plan(self) -> Iterator[str]:
        """Yield the decision."""
        yield self._task.share

    def do(self, _unit: str) -> None:
        """Make it."""
        self._task.decide()

    def facts(self) -> dict[str, object]:
        """Return no facts beyond the report."""
        return {}

    def end(self) -> None:
        """Do nothing more."""


def _pipeline_path(parts: DaemonParts, swift_dir: str) -> str:
    """Return the file with the pipeline of the daemon's requests."""
    is_own = parser_of(parts.conf_path).has_section("app:proxy-server")
    return parts.conf_path if is_own else f"{swift_dir}/internal-client.conf"


def _make_task(parts: DaemonParts) -> DaemonTask:
    settings: LayoutControllerSettings = parts.settings
    swift_dir = parts.conf.get("swift_dir", "/etc/swift")
    policies = cluster_of({"swift_dir": swift_dir}).policies
    client = document_client(
        internal_pipeline(settings.internal_client_conf_path or _pipeline_path(parts, swift_dir)), AGENT
    )
    store = ClusterLayoutStore(client, StateSeal(swift_dir))
    recon = ReconClient(settings.recon_timeout, agent=AGENT)
    reader = HealthReader(swift_dir, policies, recon)
    probe = StoredProbe(client) if settings.latency_budget else None
    holder = f"{socket.gethostname()}-{secrets.token_hex(4)}"
    controller = Controller(
        store,
        HealthObserver(reader, recon, policies, probe),
        LocalPublisher(swift_dir),
        LeaseKeeper(store, holder, settings.lease_seconds, time.monotonic),
        pace=settings.pace,
        drain=settings.drain,
        rest_ticks=_REST_TICKS,
        ordered=[policy.ring_name for policy in policies if policy.ec],
    )
    telemetry = parts.context.telemetry
    try:
        command = PublishCommand(settings.publish_command, swift_dir, telemetry)
    except ValueError as error:
        raise ConfigError(f"publish_command: {error}") from error
    return LayoutControllerTask(controller, telemetry, command)


DAEMON = Daemon(
    NAME,
    "object",
    "Carry out changes of the cluster's layout.",
    LayoutControllerSettings,
    _make_task,
    conf_name="layout-controller.conf",
    conf_about="The daemon that carries out changes of the layout, and its pipeline; one is enough.",
    once_per_cluster=True,
)
