"""A pass of the object expirer over its queue (spec: replication.md §8).

An object is deleted as of the moment at which it expired, and only if it still is to expire at that moment;
what a client asked to be deleted goes as of the moment of asking. A task leaves the queue only when its
object is known to be gone or to be another one; whatever goes wrong is met again in the next pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.cluster.direct import DirectClient, log_no_response
from swift.compose import internal_client
from swift.config.files import parser_of
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.http import fields
from swift.obj.expirer.queue import ExpirerQueue, ExpiringObject, interleaved
from swift.obj.expirer.settings import Delays, ObjectExpirerSettings
from swift.ring.ring import Ring
from swift.runtime.backendapp import BackendContext
from swift.runtime.daemon import DaemonTask, PassContext, PassReport
from swift.runtime.declaration import Daemon, DaemonParts, make_argument_adder, parse_process_numbers
from swift.runtime.queuetask import IdleTask, QueueTask, iterate_until_error

NAME = "object-expirer"


class ObjectExpirer(QueueTask):
    """The task: the queue is its only share."""

    name = NAME

    def __init__(
        self,
        context: BackendContext,
        container_ring: Ring,
        settings: ObjectExpirerSettings,
        client: InternalClient,
        queue: ExpirerQueue,
    ):
        self.context = context
        self.ring = container_ring
        self.settings = settings
        self.client = client
        self.queue = queue

        self.direct = DirectClient(
            context.transport, NAME, settings, on_no_response=log_no_response(context.telemetry.log.info)
        )

    def begin(self, share: str, pass_context: PassContext) -> ExpirerPass:
        """Return a pass over the queue."""
        return ExpirerPass(self, pass_context)

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return the recon facts of the pass."""
        return {"object_expiration_pass": passed.seconds, "expired_last_pass": passed.count("objects")}


class ExpirerPass:
    """One pass over the queue."""

    def __init__(self, task: ObjectExpirer, pass_context: PassContext):
        self._task = task
        self._pass_context = pass_context
        self._counters = pass_context.counters
        self._log = task.context.telemetry.log
        self._containers: list[str] = []

    # --- planning -------------------------------------------------------------------------------------

    def plan(self) -> Iterator[ExpiringObject]:
        """Yield the tasks that are due, so that the containers of their objects take turns."""
        size_max = self._task.settings.round_robin_task_cache_size
        for task in interleaved(self._due(), _target_container, size_max):
            if self._pass_context.stop.requested:
                return
            self._counters.add("tasks.assigned")
            yield task

    def _due(self) -> Iterator[ExpiringObject]:
        now_s = self._pass_context.clock.time()
        queue = self._task.queue
        for container in queue.containers(now_s):
            self._containers.append(container)
            what = f"{self._task.settings.account}/{container}"
            yield from iterate_until_error(queue.due(container, now_s), what, self._counters, self._log)

    # --- doing ----------------------------------------------------------------------------------------

    def do(self, unit: ExpiringObject) -> None:
        """Delete one object, and then its task."""
        started_s = self._pass_context.clock.monotonic()
        try:
            is_done = self._delete(unit)
        except UnexpectedResponse as error:
            self._counters.add("errors")
            self._log.error(f"ERROR cannot expire {unit.path}: {error}")
            return
        if is_done:
            self._dequeue(unit)
            self._counters.add("objects")
        self._counters.timing("timing", self._pass_context.clock.monotonic() - started_s)

    def _delete(self, unit: ExpiringObject) -> bool:
        """Return True if the task is done; raises ``UnexpectedResponse``."""
        headers = {"x-timestamp": unit.timestamp.normal}
        if unit.is_async_delete:
            self._task.client.delete(unit.path, headers, accept=(2, 404, 409))
            return True
        headers["x-if-delete-at"] = unit.timestamp.normal
        headers[fields.BACKEND_CLEAN_EXPIRING_QUEUE] = "no"
        status = self._task.client.delete(unit.path, headers, accept=(2, 404, 409, 412))
        if status not in (404, 412):
            return True
        # Perhaps some replicas do not know yet that it is to expire.
        return unit.timestamp.seconds + self._task.settings.reclaim_age < self._pass_context.clock.time()

    def _dequeue(self, unit: ExpiringObject) -> None:
        """Take a task out of the queue at all its servers; one that misses it is met in the next pass."""
        task = self._task
        path = EntityPath(task.settings.account, unit.container, unit.name)
        part, nodes = task.ring.nodes(task.context.hasher.digest(path.account, path.container))
        now = Timestamp(self._pass_context.clock.time())
        task.direct.request_all(nodes, part, "DELETE", path, {"x-timestamp": now.internal})

    # --- ending ---------------------------------------------------------------------------------------

    def facts(self) -> dict[str, object]:
        """Nothing beyond the counts."""
        return {}

    def end(self) -> None:
        """Remove containers of the queue that have become empty."""
        if self._pass_context.stop.requested:
            return
        for container in self._containers:
            path = EntityPath(self._task.settings.account, container)
            try:
                if self._task.queue.is_empty(container):
                    self._task.client.delete(path, accept=(2, 404, 409))
            except UnexpectedResponse as error:
                self._log.error(f"ERROR cannot remove {path}: {error}")


def _target_container(task: ExpiringObject) -> tuple[str, str | None]:
    return task.path.account, task.path.container


def _is_enabled(parts: DaemonParts) -> bool:
    """Return True if this node processes the queue: the option enables it, or the file is the expirer's
    own.
    """
    return parts.settings.dequeue_from_legacy or not parser_of(parts.conf_path).has_section(
        "app:object-server"
    )


def _make(parts: DaemonParts) -> DaemonTask:
    settings: ObjectExpirerSettings = parts.settings
    settings, log = replace(settings, **parse_process_numbers(parts, settings)), parts.context.telemetry.log
    if not _is_enabled(parts):
        log.warning(f"{parts.conf_path} [{NAME}]: dequeue_from_legacy is not set, so nothing is expired here")
        return IdleTask(NAME)
    client = internal_client(
        settings.internal_client_conf_path,
        NAME,
        tries=settings.request_tries,
        use_replication_network=True,
    )
    queue = ExpirerQueue(
        client,
        settings.account,
        Delays.parse(parts.conf),
        processes=settings.processes,
        process=settings.process,
        warn=log.warning,
    )
    return ObjectExpirer(parts.context, parts.rings.container, settings, client, queue)


DAEMON = Daemon(
    NAME,
    "object",
    "Delete what has passed its X-Delete-At.",
    ObjectExpirerSettings,
    _make,
    add_arguments=make_argument_adder("expirers that share the queue"),
    once_per_cluster=True,
    sample_lines=("# delay_reaping_<account>[/<container>] = <seconds>",),
)
