"""The layout agent of a node: it keeps ring files those of the newest manifest that nodes have.

Each pass reads the manifests of some storage servers, takes the newest one that this node can verify, fetches
what it lacks, and installs it. Files of the present manifest that are missing or damaged are restored. Files
that were changed by hand are reported, and stay until the next version. Without ``layout.pub`` a pass does
nothing. doc/formats/layout-manifest.md
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from swift import green
from swift.base.errors import SwiftError
from swift.cluster.rings import Rings, table_check
from swift.cluster.transport import NodeAddress
from swift.config.kinds import SECONDS, integer
from swift.config.schema import Settings, option
from swift.layout.fetching import (
    FetchFailed,
    LayoutClient,
    fetch_missing,
    known_servers,
    parse_servers,
)
from swift.ring.errors import LayoutError
from swift.ring.layoutfiles import Installation, LayoutFolder
from swift.ring.manifest import Manifest
from swift.runtime.daemon import PassContext, PassReport, Schedule
from swift.runtime.declaration import Daemon, DaemonParts
from swift.runtime.queuetask import QueueTask
from swift.telemetry.metrics import GaugeMetric
from swift.telemetry.repeatederrors import RepeatedErrorLog
from swift.telemetry.telemetry import Telemetry

NAME = "layout-agent"
#: The key of its page in the recon file, and the name of the page.
RECON_KEY = "layout"
#: A manifest that was refused is tried again after so many passes.
REFUSED_PASSES = 10
_VERSION = GaugeMetric("swift_layout_version", "Version of the installed layout; 0: none.", ())
_CHANGED = GaugeMetric("swift_layout_changed_files", "Files of the layout that were changed by hand.", ())
_FAILED = GaugeMetric("swift_layout_failed", "1 if the last pass of the layout agent failed.", ())


@dataclass(frozen=True)
class LayoutAgentSettings(Settings):
    """``[layout-agent]``."""

    interval: float = option(15.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    peers: int = option(3, "Nodes whose layout is compared in each pass.", kind=integer(1))
    seeds: tuple[str, ...] = option(
        (),
        "Storage servers, as IP:PORT, for a node without rings or with those of nodes that are gone.",
    )
    conn_timeout: float = option(1.0, "Seconds to wait for a connection to a server.", kind=SECONDS)
    node_timeout: float = option(10.0, "Seconds to wait for its response.", kind=SECONDS)
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)

    @property
    def schedule(self) -> Schedule:
        """The same for the runner."""
        return Schedule(self.interval, report_interval_s=self.report_interval)


@dataclass(frozen=True)
class Candidate:
    """A manifest that this node can verify, and a server that has it."""

    installation: Installation
    server: NodeAddress | None

    @property
    def manifest(self) -> Manifest:
        """The manifest."""
        return self.installation.manifest


class LayoutAgent(QueueTask):
    """The task: the layout is its only share."""

    name = NAME
    share = "layout"

    def __init__(
        self,
        folder: LayoutFolder,
        rings: Rings,
        client: LayoutClient,
        settings: LayoutAgentSettings,
        *,
        telemetry: Telemetry,
        rng: random.Random | None = None,
    ):
        self.folder = folder
        self.rings = rings
        self.client = client
        self.settings = settings
        self.seeds = parse_servers(settings.seeds)
        self.log = telemetry.log
        self.metrics = telemetry.metrics
        self.rng = rng or random.Random()
        #: The newest manifest that this process has verified: no older one is taken if its file is lost.
        self.newest: Manifest | None = None
        #: Manifest id → passes until it is tried again.
        self.refused: dict[str, int] = {}
        self.error = ""
        self._repeated: RepeatedErrorLog | None = None

    def __repr__(self) -> str:
        return f"<LayoutAgent of {self.folder}>"

    def begin(self, share: str, context: PassContext) -> LayoutPass:
        """Return a pass."""
        if self._repeated is None:
            self._repeated = RepeatedErrorLog(self.log, context.clock)
        self.error = ""
        return LayoutPass(self, context)

    def log_failure(self, sentence: str) -> None:
        """Report a failure of this pass: in the log, once in a while, and to recon."""
        self.error = sentence
        if self._repeated is not None:
            self._repeated.error(f"ERROR {sentence}")

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return the recon page."""
        facts = passed.results[self.share].facts if self.share in passed.results else {}
        return {RECON_KEY: {**facts, "last_check": passed.ended_s}}


class LayoutPass:
    """One comparison of the node's layout with that of others."""

    def __init__(self, agent: LayoutAgent, context: PassContext):
        self._agent = agent
        self._folder = agent.folder
        self._counters = context.counters
        self._check = table_check(agent.rings.policies)
        self._servers: list[NodeAddress] = []
        self._asked = self._failures = 0

    def plan(self) -> Iterator[Candidate]:
        """Yield the manifests that would change something, the newest first."""
        agent = self._agent
        try:
            if self._folder.trusted_keys() is None:
                return
            self._recover()
            own = self._own()
            hosts = known_servers(agent.rings.readable_views(), self._folder)
            found = self._candidates(self._sample(hosts))
            if not found and agent.seeds:
                found = self._candidates(agent.seeds)
            if self._failures and self._failures == self._asked:
                agent.error = "no storage server responds"
            self._servers = [server for ports in hosts for server in ports] + agent.seeds
            yield from self._chosen(found, own)
        except (SwiftError, OSError) as error:
            self._fail(error)

    def _recover(self) -> None:
        """Finish what an earlier process did not."""
        try:
            finished = self._folder.recover(check=self._check)
        except LayoutError as error:
            self._agent.log.warning(f"an interrupted change of the layout was given up: {error}")
            return
        if finished is not None:
            self._agent.log.notice(f"finished the installation of {finished}")

    def _own(self) -> Installation | None:
        """Return the repair of the present layout; None if there is none."""
        try:
            installed = self._folder.installed()
        except LayoutError as error:
            self._agent.log_failure(f"{error}; another one is taken from other nodes")
            return None
        return self._folder.open(installed.data, check=self._check) if installed else None

    def _sample(self, hosts: Sequence[Sequence[NodeAddress]]) -> list[NodeAddress]:
        """Return a server each of some random hosts."""
        agent = self._agent
        chosen = agent.rng.sample(hosts, min(agent.settings.peers, len(hosts)))
        return [agent.rng.choice(ports) for ports in chosen]

    def _candidates(self, servers: Sequence[NodeAddress]) -> list[Candidate]:
        """Return the verified manifests of servers."""
        self._asked += len(servers)
        found = green.gather([partial(self._candidate, server) for server in servers])
        return [candidate for candidate in found if candidate is not None]

    def _candidate(self, server: NodeAddress) -> Candidate | None:
        try:
            data = self._agent.client.manifest(server)
        except FetchFailed as error:
            # Nodes that are away are no news of each pass.
            self._agent.log.debug(str(error))
            self._failures += 1
            return None
        if data is None:
            return None
        try:
            return Candidate(self._folder.open(data, check=self._check), server)
        except LayoutError as error:
            self._counters.add("refused")
            self._agent.log_failure(f"the layout of {server.key} is refused: {error}")
            return None

    def _chosen(self, found: list[Candidate], own: Installation | None) -> Iterator[Candidate]:
        """Yield the candidates that are newer than what this node has, then the repair of its own files."""
        agent = self._agent
        if own is not None and (agent.newest is None or agent.newest.rank < own.manifest.rank):
            agent.newest = own.manifest
        newer: dict[str, Candidate] = {}
        for candidate in sorted(found, key=lambda each: each.manifest.rank, reverse=True):
            rank = candidate.manifest.rank
            is_replay = agent.newest is not None and rank < agent.newest.rank
            if not is_replay and (own is None or rank > own.manifest.rank):
                newer.setdefault(candidate.manifest.id, candidate)
        for manifest_id, candidate in newer.items():
            left = agent.refused.get(manifest_id, 0)
            if left:
                agent.refused[manifest_id] = left - 1
                agent.error = f"{candidate.manifest} was refused and is tried again later"
            else:
                yield candidate
        if own is not None and own.manifest == agent.newest and own.replaced():
            yield Candidate(own, None)

    def do(self, unit: Candidate) -> None:
        """Install a manifest, or restore files of the present one."""
        agent = self._agent
        if agent.newest is not None and agent.newest.rank > unit.manifest.rank:
            return
        try:
            first = [unit.server] if unit.server is not None else []
            others = [server for server in self._servers if server not in first]
            agent.rng.shuffle(others)
            fetch_missing(agent.client, unit.installation, first + others, agent.rng)
            names = unit.installation.commit()
        except LayoutError as error:
            agent.refused = {unit.manifest.id: REFUSED_PASSES}
            self._counters.add("refused")
            agent.log_failure(str(error))
        except (SwiftError, OSError) as error:
            self._fail(error)
        else:
            agent.newest = unit.manifest
            agent.refused.pop(unit.manifest.id, None)
            changed = ", ".join(names) or "no file differed"
            if unit.server is None:
                self._counters.add("restored")
                agent.log.notice(f"restored files of {unit.manifest}: {changed}")
            else:
                self._counters.add("installed")
                agent.log.notice(f"installed {unit.manifest}: {changed}")

    def _fail(self, error: Exception) -> None:
        self._counters.add("errors")
        self._agent.log_failure(f"cannot bring the layout up to date: {error}")

    def facts(self) -> dict[str, object]:
        """Return the state of the node's layout."""
        agent = self._agent
        manifest: Manifest | None = None
        since_s: float | None = None
        changed: tuple[str, ...] = ()
        try:
            installed = self._folder.installed()
            if installed is not None:
                manifest = installed.manifest
                since_s = self._folder.installed_s()
                changed = self._folder.states(manifest).changed
        except (LayoutError, OSError) as error:
            agent.error = agent.error or str(error)
        version = manifest.version if manifest else 0
        _VERSION.of(agent.metrics).set(version)
        _CHANGED.of(agent.metrics).set(len(changed))
        _FAILED.of(agent.metrics).set(1 if agent.error else 0)
        return {
            "version": version,
            "id": manifest.id if manifest else "",
            "issued": manifest.issued_s if manifest else None,
            "since": since_s,
            "changed": list(changed),
            "error": agent.error,
        }

    def end(self) -> None:
        """Leave nothing behind."""


def _make(parts: DaemonParts) -> LayoutAgent:
    settings: LayoutAgentSettings = parts.settings
    context = parts.context
    return LayoutAgent(
        LayoutFolder(parts.rings.folder),
        parts.rings,
        LayoutClient(context.transport, NAME, settings),
        settings,
        telemetry=context.telemetry,
    )


DAEMON = Daemon(
    NAME,
    "layout",
    "Keep the ring files of a node those of the cluster's layout.",
    LayoutAgentSettings,
    _make,
    conf_name="layout-agent.conf",
    conf_about="The layout of the cluster on this node; every storage node and every proxy has it.",
    pipeline=None,
    small_cluster={"interval": 30},
)
