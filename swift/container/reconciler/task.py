"""A pass of the container reconciler over its queue (spec: account-container.md §18).

The copy in the right policy gets a time a little above everything that the wrong policy has, so that nothing
written there before comes back; only when it is stored is the wrong copy removed, and only then does the
entry leave the queue. Whatever goes wrong in between is met again in the next pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from swift.base.entity import EntityPath
from swift.base.timestamp import ZERO, InvalidTimestamp, Timestamp
from swift.cluster.direct import DirectClient, has_majority, log_no_response
from swift.cluster.rings import Rings
from swift.cluster.transport import BackendResponse
from swift.compose import internal_client
from swift.config.kinds import COUNT, SECONDS, integer
from swift.config.schema import Settings, option
from swift.container.misplaced import QUEUE_ACCOUNT
from swift.container.policyconflict import PolicyClaim, wins
from swift.container.reconciler.queue import MisplacedObject, ReconcilerQueue
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.transform import as_request_body
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import PassContext, PassReport, Schedule
from swift.runtime.declaration import Daemon, DaemonParts, make_argument_adder, parse_process_numbers
from swift.runtime.queuetask import QueueTask, iterate_until_error


@dataclass(frozen=True)
class ContainerReconcilerSettings(Settings):
    """Options of the container reconciler."""

    interval: float = option(30.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)
    reclaim_age: int = option(
        604800, "Seconds after which an entry is dropped if no node has its object.", kind=COUNT
    )
    request_tries: int = option(3, "Number of times to try a request.", kind=integer(1))
    concurrency: int = option(1, "Objects moved at the same time.", kind=integer(1))
    processes: int = option(0, "Reconcilers that share the queue; 0: each does all.", kind=COUNT)
    process: int = option(0, "Number of this process, from 0.", kind=COUNT)
    internal_client_conf_path: str = option(
        "", "Configuration of the pipeline that moves objects; empty: the pipeline of this file.", sample=""
    )
    conn_timeout: float = option(0.5, "Seconds to wait for a connection to a container server.", kind=SECONDS)
    node_timeout: float = option(10.0, "Seconds to wait for its response.", kind=SECONDS)

    @property
    def schedule(self) -> Schedule:
        """The same for the runner."""
        return Schedule(self.interval, 0.0, self.concurrency, report_interval_s=self.report_interval)


NAME = "container-reconciler"
#: Offsets above the misplaced version: the wrong copy's tombstone, the entry's removal, the
#: right copy.
TOMBSTONE, REMOVAL, RIGHT = 1, 2, 3
#: Outcomes of entries; those of ``_DONE`` leave the queue.
_DONE = ("success", "noop_object", "lost_source")
OUTCOMES = (
    *_DONE,
    *("unavailable_container", "unavailable_source", "unavailable_policy", "unknown_policy", "errors"),
)
#: Headers of the response, not of the object.
_NOT_STORED = frozenset(
    (
        *("date", "connection", "keep-alive", "transfer-encoding", "content-length", "accept-ranges"),
        *("last-modified", "x-timestamp", "content-range", "server", "x-trans-id", "x-openstack-request-id"),
        # A symlink filter in the pipeline shows these beside what is stored, and would make another link.
        *("x-symlink-target", "x-symlink-target-account", "x-symlink-target-etag", "x-symlink-target-bytes"),
    )
)


class ContainerReconciler(QueueTask):
    """The task: the queue is its only share."""

    name = NAME

    def __init__(
        self,
        context: BackendContext,
        rings: Rings,
        settings: ContainerReconcilerSettings,
        client: InternalClient,
        mover: InternalClient,
        queue: ReconcilerQueue,
    ):
        """``mover`` tries once: what it sends is read from elsewhere at the same time."""
        self.context = context
        self.rings = rings
        self.settings = settings
        self.client = client
        self.mover = mover
        self.queue = queue

        self.direct = DirectClient(
            context.transport, NAME, settings, on_no_response=log_no_response(context.telemetry.log.info)
        )

    def begin(self, share: str, pass_context: PassContext) -> ReconcilerPass:
        """Return a pass over the queue."""
        return ReconcilerPass(self, pass_context)

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return the recon facts of the pass."""
        return {
            "reconciler_stats": passed.counts(OUTCOMES),
            "reconciler_time": passed.seconds,
            "reconciler_last": passed.ended_s,
        }


class ReconcilerPass:
    """One pass over the queue."""

    def __init__(self, task: ContainerReconciler, pass_context: PassContext):
        self._task = task
        self._pass_context = pass_context
        self._counters = pass_context.counters
        self._log = task.context.telemetry.log
        self._containers: list[str] = []

    def plan(self) -> Iterator[MisplacedObject]:
        """Yield the entries, those of the newest hour first."""
        queue = self._task.queue
        for container in queue.containers(self._pass_context.clock.time()):
            self._containers.append(container)
            what = f"{QUEUE_ACCOUNT}/{container}"
            for entry in iterate_until_error(queue.entries(container), what, self._counters, self._log):
                if self._pass_context.stop.requested:
                    return
                yield entry

    def do(self, unit: MisplacedObject) -> None:
        """Bring one object to where it belongs, and take its entry out of the queue."""
        try:
            outcome = self._reconcile(unit)
        except UnexpectedResponse as error:
            self._counters.add("errors")
            self._log.error(f"ERROR cannot reconcile {unit}: {error}")
            return
        self._counters.add(outcome)
        if outcome in _DONE:
            self._pop(unit)

    # --- deciding -------------------------------------------------------------------------------------

    def _reconcile(self, entry: MisplacedObject) -> str:
        """Return the outcome; raises ``UnexpectedResponse``."""
        task = self._task
        policies = task.context.policies
        right = self._policy_of(entry)
        if right is None:
            return "unavailable_container"
        if right == entry.policy_index:
            return "noop_object"
        for index in (right, entry.policy_index):
            policy = policies.get(index)
            if policy is None:
                return "unknown_policy"
            if task.rings.object(policy).view().next_part_power is not None:
                # Its objects are about to get other places.
                return "unavailable_policy"
        there = self._newest(entry.path, right)
        if there >= entry.timestamp:
            self._throw_tombstone(entry)
            return "success"
        return self._move(entry, right)

    def _policy_of(self, entry: MisplacedObject) -> int | None:
        """Return the policy of the entry's container; None when no majority of its nodes can say."""
        task, path = self._task, entry.path
        part, nodes = task.rings.container.nodes(task.context.hasher.digest(path.account, path.container))
        answers = task.direct.request_all(nodes, part, "HEAD", EntityPath(path.account, path.container), {})
        if not has_majority(answers, 404):
            return None
        best: PolicyClaim | None = None
        for reply in answers:
            claim = None if reply is None else claim_of(reply)
            if claim is not None and (best is None or wins(claim, best)):
                best = claim
        return None if best is None else best.index

    def _newest(self, path: EntityPath, policy_index: int) -> Timestamp:
        """Return the time of what a policy has of an object, be it a tombstone; zero when it has nothing."""
        headers = {**_in(policy_index), "x-newest": "true"}
        with self._task.client.request("HEAD", path, headers, accept=(2, 404)) as response:
            return _time_of(response.headers)

    # --- moving ---------------------------------------------------------------------------------------

    def _move(self, entry: MisplacedObject, right: int) -> str:
        task = self._task
        headers = {**_in(entry.policy_index), "x-newest": "true", fields.BACKEND_OPEN_EXPIRED: "true"}
        with task.client.request("GET", entry.path, headers, query="symlink=get", accept=(2, 404)) as source:
            found = _time_of(source.headers)
            if source.is_success and found >= entry.timestamp:
                stored = stored_headers(source.headers)
                sent = {
                    **stored,
                    **_in(right),
                    "x-timestamp": max(found, entry.timestamp).above(RIGHT).internal,
                }
                with as_request_body(source) as body:
                    task.mover.put(entry.path, lambda: body, sent)
            elif entry.is_delete or (source.status == 404 and found >= entry.timestamp):
                sent = {**_in(right), "x-timestamp": max(found, entry.timestamp).above(RIGHT).internal}
                task.client.delete(entry.path, sent, accept=(2, 404, 409))
            else:
                return self._without_source(entry)
        self._throw_tombstone(entry)
        return "success"

    def _without_source(self, entry: MisplacedObject) -> str:
        now_s = self._pass_context.clock.time()
        if entry.timestamp.seconds + self._task.settings.reclaim_age > now_s:
            return "unavailable_source"
        self._log.error(
            f"{entry.path} was not found in any policy within reclaim_age; removing queue entry {entry}"
        )
        return "lost_source"

    def _throw_tombstone(self, entry: MisplacedObject) -> None:
        """Remove the copy in the wrong policy."""
        headers = {**_in(entry.policy_index), "x-timestamp": entry.timestamp.above(TOMBSTONE).internal}
        self._task.client.delete(entry.path, headers, accept=(2, 404, 409))

    def _pop(self, entry: MisplacedObject) -> None:
        """Take an entry out of the queue at all its servers; one that misses it is met in the next pass."""
        task = self._task
        path = EntityPath(QUEUE_ACCOUNT, entry.container, entry.name)
        part, nodes = task.rings.container.nodes(task.context.hasher.digest(path.account, path.container))
        stamp = max(entry.recorded, entry.timestamp).above(REMOVAL).internal
        headers = {"x-timestamp": stamp, fields.BACKEND_STORAGE_POLICY_INDEX: "0"}
        task.direct.request_all(nodes, part, "DELETE", path, headers)

    # --- ending ---------------------------------------------------------------------------------------

    def facts(self) -> dict[str, object]:
        """Nothing beyond the counts."""
        return {}

    def end(self) -> None:
        """Remove containers of the queue that are empty and too old to get entries again."""
        if self._pass_context.stop.requested:
            return
        before_s = self._pass_context.clock.time() - self._task.settings.reclaim_age
        for container in self._containers:
            if int(container) >= before_s:
                continue
            path = EntityPath(QUEUE_ACCOUNT, container)
            try:
                if self._task.queue.is_empty(container):
                    self._task.client.delete(path, accept=(2, 404, 409))
            except UnexpectedResponse as error:
                self._log.error(f"ERROR cannot remove {path}: {error}")


def claim_of(reply: BackendResponse) -> PolicyClaim | None:
    """Return a container server's policy claim; None if it does not know the container."""
    if not (reply.is_success or reply.status == 404):
        return None
    try:
        put, delete, changed = (
            Timestamp(reply.headers[name])
            for name in (
                fields.BACKEND_PUT_TIMESTAMP,
                fields.BACKEND_DELETE_TIMESTAMP,
                fields.BACKEND_STATUS_CHANGED_AT,
            )
        )
        index = int(reply.headers[fields.BACKEND_STORAGE_POLICY_INDEX])
        count = int(reply.headers.get("x-container-object-count", "0"))
    except (KeyError, ValueError):
        return None
    return PolicyClaim(index, count, put, delete, changed) if put else None


def _in(policy_index: int) -> HeaderMap:
    return {fields.BACKEND_STORAGE_POLICY_INDEX: str(policy_index)}


def _time_of(headers: HeaderMap) -> Timestamp:
    """Return the time of the last change in a response; zero if it is missing."""
    try:
        return Timestamp(headers.get(fields.BACKEND_TIMESTAMP) or headers.get("x-timestamp", "0"))
    except InvalidTimestamp:
        return ZERO


def stored_headers(answered: HeaderMap) -> HeaderMap:
    """Return the headers that make the object what it is."""
    return {
        name: value
        for name, value in answered.items()
        if name not in _NOT_STORED and not name.startswith(fields.BACKEND)
    }


def _make(parts: DaemonParts) -> ContainerReconciler:
    settings: ContainerReconcilerSettings = parts.settings
    settings = replace(settings, **parse_process_numbers(parts, settings))
    pipeline = settings.internal_client_conf_path or parts.conf_path
    client, mover = (
        internal_client(pipeline, NAME, tries=tries, use_replication_network=True)
        for tries in (settings.request_tries, 1)
    )
    queue = ReconcilerQueue(
        client,
        processes=settings.processes,
        process=settings.process,
        warn=parts.context.telemetry.log.warning,
    )
    return ContainerReconciler(parts.context, parts.rings, settings, client, mover, queue)


DAEMON = Daemon(
    NAME,
    "container",
    "Move objects that lie in a wrong policy to the one of their container.",
    ContainerReconcilerSettings,
    _make,
    add_arguments=make_argument_adder("reconcilers that share the queue"),
    conf_name="container-reconciler.conf",
    conf_about="The container reconciler, and the pipeline by which it moves objects; "
    "one for the cluster is enough.",
    once_per_cluster=True,
)
