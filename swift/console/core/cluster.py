"""The view of the cluster that all operators share: rings, the servers' recon data, and the verdict on them.

A worker collects it once for all viewers, when one of them needs it and what is there is too old. Without
viewers nothing is collected.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Generic, TypeVar

from swift import green
from swift.base.documents import JsonObject
from swift.base.errors import SwiftError
from swift.cluster.health import NodeHealth
from swift.operations.health.identities import IdentityWatch
from swift.operations.health.reader import CapacityTerms, ClusterState, HealthReader
from swift.operations.recon.client import Host, ReconClient, unique_hosts
from swift.policy.policy import Policies

#: Seconds for which what was collected is used.
FRESH_S = 10.0
#: Seconds for which a viewer waits for a new collection while there is an older one.
PATIENCE_S = 3.0
#: Seconds to wait for a server.
RECON_TIMEOUT_S = 3.0
#: Names of the recon checks below ``/recon/`` that pages read besides those of the health, and their servers.
CHECKS: Mapping[str, str] = {
    "cachetier": "object",
    "sharding": "container",
    "updater/container": "container",
    "updater/object": "object",
    "expirer/object": "object",
    "scrub/object": "object",
    **{f"auditor/{kind}": kind for kind in ("account", "container", "object")},
}
V = TypeVar("V")
#: Host → its response to a check.
Reports = Mapping[Host, JsonObject]


class ClusterUnreadable(SwiftError):
    """The rings cannot be read, so there is nothing to show."""


class Collection(Generic[V]):
    """A value that takes a while to collect: by one green thread, for all that wait."""

    def __init__(self, collect: Callable[[], V], now: Callable[[], float] = time.monotonic):
        self._collect = collect
        self._now = now
        self._value: V | None = None
        self._error: Exception | None = None
        self._taken_s = float("-inf")
        self._under_way: green.Event | None = None

    def latest(self) -> V:
        """Return the value; it is older than ``FRESH_S`` only while a new one is slow to come.

        Raises ``ClusterUnreadable``.
        """
        if self._now() - self._taken_s > FRESH_S:
            if self._under_way is None:
                self._under_way = green.Event()
                # A viewer that leaves does not stop it.
                green.spawn_detached(self._run, self._under_way)
            self._under_way.wait(None if self._value is None else PATIENCE_S)
        if self._error is not None:
            raise ClusterUnreadable(str(self._error))
        assert self._value is not None, "a collection ends with a value or an error"
        return self._value

    def _run(self, done: green.Event) -> None:
        try:
            self._value, self._error = self._collect(), None
        except (SwiftError, OSError) as error:
            self._value, self._error = None, error
        finally:
            if self._value is None and self._error is None:
                self._error = RuntimeError("the cluster's state could not be collected")
            self._taken_s = self._now()
            self._under_way = None
            done.set()


class ClusterWatch:
    """The collections of one worker; ``nodes`` is the health of nodes as its proxy knows it."""

    def __init__(
        self,
        swift_dir: str,
        policies: Policies,
        *,
        client: ReconClient | None = None,
        history: str = "",
        nodes: NodeHealth | None = None,
    ):
        self.swift_dir = swift_dir
        self.policies = policies
        self.nodes = nodes
        #: Streams of events that are open.
        self.streams = 0
        #: True while a change of a ring is worked out.
        self.is_previewing = False
        self._client = client or ReconClient(RECON_TIMEOUT_S, agent="swift-console")
        #: For what may wait for a disk, or takes long.
        self.threads = green.ThreadPool(2, "console")
        reader = HealthReader(
            swift_dir,
            policies,
            self._client,
            CapacityTerms(history),
            identities=IdentityWatch(swift_dir),
            run=self.threads.call,
        )
        self._state = Collection(reader.read)
        self._reports = {check: Collection(partial(self._ask, check)) for check in CHECKS}

    def state(self) -> ClusterState:
        """Return the state of the cluster. Raises ``ClusterUnreadable``."""
        return self._state.latest()

    def reports(self, *checks: str) -> list[Reports]:
        """Return the responses to each of these checks. Raises ``ClusterUnreadable``."""
        return green.gather([self._reports[check].latest for check in checks])

    def _ask(self, check: str) -> Reports:
        hosts = responsive_hosts(self.state(), CHECKS[check])
        replies = self._client.recon(hosts, check)
        return {reply.host: reply.content for reply in replies if isinstance(reply.content, dict)}

    def __repr__(self) -> str:
        return f"ClusterWatch({self.swift_dir!r})"


def responsive_hosts(state: ClusterState, kind: str) -> Sequence[Host]:
    """Return the servers of a type that responded."""
    silent = state.snapshot.unresponsive.get(kind, ())
    hosts = {
        host for ring in state.rings if ring.server_type == kind for host in unique_hosts(ring.view.devices)
    }
    return sorted(hosts.difference(silent))
