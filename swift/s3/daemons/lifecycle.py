"""The lifecycle daemon: its settings and its passes over buckets with rules or inventories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import md5

from swift.base.entity import EntityPath
from swift.base.errors import SwiftError
from swift.base.timestamp import Timestamp
from swift.compose import own_client
from swift.config.kinds import COUNT, SECONDS, integer, number
from swift.config.schema import Settings, option
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.runtime.daemon import DaemonTask, PassContext, PassReport, Schedule
from swift.runtime.declaration import Daemon, DaemonParts, make_argument_adder, parse_process_numbers
from swift.runtime.queuetask import IdleTask, QueueTask
from swift.s3.config.inventory import decode_inventories
from swift.s3.config.lifecycle import decode_rules
from swift.s3.config.lifecyclerules import DAY_S
from swift.s3.core.codec import DamagedConfiguration
from swift.s3.core.session import sysmeta_of
from swift.s3.core.uploadstate import StateUnavailable
from swift.s3.daemons.expiration import (
    CHANGED,
    COMPLETION_GRACE_S,
    ENDED,
    KEPT,
    LOCKED,
    CompletionRecovery,
    Expiration,
    UnfinishedUpload,
)
from swift.s3.daemons.inventories import (
    ALREADY_EXISTS,
    INTERRUPTED,
    NO_DESTINATION,
    TAKEN,
    DueInventories,
    InventoryRun,
    is_due,
)
from swift.s3.daemons.orphans import OrphanCandidate, OrphanCleanup
from swift.s3.daemons.transition import MOVED, TransitionRun
from swift.s3.daemons.walk import (
    BucketWalk,
    CurrentCandidate,
    NoncurrentCandidate,
    RegisteredBucket,
    TransitionCandidate,
    Unit,
    registered_buckets,
    unregister_bucket,
)
from swift.telemetry.log import Log


@dataclass(frozen=True)
class LifecycleSettings(Settings):
    """The pace of the lifecycle daemon, and its share of the buckets."""

    interval: float = option(3600.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)
    request_tries: int = option(3, "Number of times to try a request.", kind=integer(1))
    concurrency: int = option(4, "Objects ended at the same time.", kind=integer(1))
    objects_per_second: float = option(50.0, "Objects begun per second; 0: any.", kind=number(0))
    page_size: int = option(1000, "Rows of one page of a listing.", kind=integer(1))
    abort_grace: float = option(
        10.0, "Seconds between the end of an upload and the removal of its parts.", kind=SECONDS
    )
    orphan_age: float = option(
        604800.0, "Age of parts that are removed when no upload and no object has them.", kind=SECONDS
    )
    lifecycle_debug_interval: int = option(
        0,
        "Seconds that the days of rules have, and at most between passes, for tests of clients; 0: days. "
        "The same as in the section of s3api.",
        kind=COUNT,
    )
    processes: int = option(0, "Daemons that share the buckets; 0: each does all.", kind=COUNT)
    process: int = option(0, "Number of this process, from 0.", kind=COUNT)
    internal_client_conf_path: str = option(
        "",
        "Configuration of the pipeline that deletes expired objects; empty: the pipeline of this file.",
        sample="",
    )

    @property
    def day_s(self) -> int:
        """Seconds of a day in rules."""
        return self.lifecycle_debug_interval or DAY_S

    @property
    def schedule(self) -> Schedule:
        """The schedule for the runner."""
        interval_s = min(self.interval, self.lifecycle_debug_interval or self.interval)
        return Schedule(
            interval_s, self.objects_per_second, self.concurrency, report_interval_s=self.report_interval
        )


# --- passes -------------------------------------------------------------------------------------------
# A bucket whose rules have not changed is walked over once a day (UTC): between two midnights nothing
# becomes due. So an idle pass is one listing of the registry. An interrupted pass continues where
# it was.

NAME = "s3-lifecycle"
#: Errors after which the next pass tries again.
_FAILURES = (UnexpectedResponse, StateUnavailable, DamagedConfiguration)
_COUNTER_OF_UNIT = {
    "CurrentCandidate": "objects",
    "NoncurrentCandidate": "versions",
    "TransitionCandidate": "versions",
    "UploadCandidates": "uploads",
    "OrphanCandidate": "leftovers",
    "UnfinishedUpload": "unfinished",
}
#: The counters of a pass.
COUNTS = (
    *("buckets", "forgotten", "errors"),
    *(
        f"{kind}.{outcome}"
        for kind in dict.fromkeys(_COUNTER_OF_UNIT.values())
        for outcome in (ENDED, MOVED, KEPT, CHANGED, LOCKED)
    ),
    *(f"inventories.{outcome}" for outcome in (TAKEN, ALREADY_EXISTS, NO_DESTINATION, INTERRUPTED)),
)


#: The work of a pass beside inventories.
Job = Unit | OrphanCandidate | UnfinishedUpload


class Lifecycle(QueueTask):
    """The task: the registry is its only share."""

    name = NAME
    share = "buckets"

    def __init__(self, settings: LifecycleSettings, client: InternalClient, log: Log):
        self.settings = settings
        self.client = client
        self.log = log
        #: Buckets that were walked over: when their rules changed last, and on which day.
        self.walked_buckets: dict[str, tuple[Timestamp, int]] = {}

    def begin(self, share: str, pass_context: PassContext) -> LifecyclePass:
        """Return a pass over the buckets."""
        return LifecyclePass(self, pass_context)

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return the recon facts of the pass."""
        return {
            "s3_lifecycle_stats": passed.counts(COUNTS),
            "s3_lifecycle_time": passed.seconds,
            "s3_lifecycle_last": passed.ended_s,
        }

    def is_own_bucket(self, entry: RegisteredBucket) -> bool:
        """Return True if a bucket belongs to this process's share."""
        if not self.settings.processes:
            return True
        digest = md5(entry.name.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()
        return int(digest, 16) % self.settings.processes == self.settings.process


class LifecyclePass:
    """One pass over the buckets."""

    def __init__(self, task: Lifecycle, pass_context: PassContext):
        self._task = task
        self._context = pass_context
        self._counters = pass_context.counters
        self._failed: set[str] = set()
        self._walked: dict[str, tuple[Timestamp, int]] = {}
        self._inventory_run = InventoryRun(
            task.client, pass_context.clock.time, lambda: pass_context.stop.requested, task.settings.page_size
        )
        self._expiration = Expiration(
            task.client, pass_context.clock.time, pass_context.stop.wait, task.settings.abort_grace
        )

        self._transition_run = TransitionRun(task.client, pass_context.clock.time)
        page_size, age_s = task.settings.page_size, task.settings.orphan_age
        self._orphan_cleanup = OrphanCleanup(task.client, pass_context.clock.time, page_size, age_s)
        under_way_s = min(COMPLETION_GRACE_S, age_s)
        self._completion_recovery = CompletionRecovery(
            task.client, pass_context.clock.time, page_size, under_way_s
        )

    # --- planning -------------------------------------------------------------------------------------

    def plan(self) -> Iterator[Job | DueInventories]:
        """Yield candidates for expiration and transition, and due inventories, bucket by bucket."""
        dues: list[DueInventories] = []
        position = self._context.cursor.position
        done = position if isinstance(position, list) and len(position) == 3 else ["", "", ""]
        for entry in registered_buckets(self._task.client):
            if self._context.stop.requested:
                return
            if entry.name < str(done[0]) or not self._task.is_own_bucket(entry):
                continue
            # In the bucket at which a former process stopped, the pass continues after the last name.
            stage, after = (str(done[1]), str(done[2])) if entry.name == done[0] else ("", "")
            today = int(self._context.clock.time() // self._task.settings.day_s)
            if not stage and self._task.walked_buckets.get(entry.name) == (entry.changed_at, today):
                continue
            try:
                yield from self._plan_bucket(entry, stage, after, dues)
            except _FAILURES as error:
                self._log_failure(entry, f"cannot list {entry.name} any further", error)
            self._walked[entry.name] = (entry.changed_at, today)
        # Inventories take long, so they run after all lifecycle work.
        yield from dues

    def _plan_bucket(
        self, entry: RegisteredBucket, stage: str, after: str, dues: list[DueInventories]
    ) -> Iterator[Job]:
        client, now_s = self._task.client, self._context.clock.time()
        headers = client.head(entry.path)
        sysmeta = sysmeta_of(headers or {})
        encode_rules = decode_rules(sysmeta)
        day_s = self._task.settings.day_s
        rules = [replace(rule, day_s=day_s) for rule in encode_rules if rule.is_enabled]
        inventories = decode_inventories(sysmeta)
        containers = self._orphan_cleanup.list_segments_containers(entry)
        if not (containers or (headers is not None and (encode_rules or inventories))):
            unregister_bucket(client, entry)
            self._counters.add("forgotten")
            return
        if headers is None:
            yield from self._plan_deleted_bucket(entry, containers)
            return
        self._counters.add("buckets")
        walk = BucketWalk(client, entry, rules, now_s, self._task.settings.page_size)
        if stage != "uploads" and any(rule.affects_objects for rule in rules):
            listed = walk.version_candidates if "x-versions-enabled" in headers else walk.object_candidates
            yield from listed(after, lambda name: self._note_progress(entry, "objects", name))
            after = ""
        if any(rule.abort_days is not None for rule in rules):
            yield from walk.upload_candidates(after, lambda name: self._note_progress(entry, "uploads", name))
        yield from self._completion_recovery.find_unfinished(entry)
        versioned = "x-versions-enabled" in headers
        if self._orphan_cleanup.is_due_today(entry):
            yield from self._orphan_cleanup.find_candidates(entry, containers)
        due = [item for item in inventories.values() if is_due(item, now_s)]
        if due:
            dues.append(DueInventories(entry, due, versioned))

    def _plan_deleted_bucket(
        self, entry: RegisteredBucket, containers: Sequence[EntityPath]
    ) -> Iterator[Job]:
        """Yield the remains of uploads that had not ended when their bucket was deleted."""
        client, now_s = self._task.client, self._context.clock.time()
        yield from self._completion_recovery.find_unfinished(entry)
        before_s = now_s - self._task.settings.orphan_age
        yield from BucketWalk(
            client, entry, [], now_s, self._task.settings.page_size
        ).upload_candidates_before(before_s)
        yield from self._orphan_cleanup.find_candidates(entry, containers)
        for segments in containers:
            # A later pass deletes a container that is not empty yet.
            client.delete(segments, accept=(2, 404, 409))

    def _note_progress(self, entry: RegisteredBucket, stage: str, name: str) -> None:
        self._context.cursor.note([entry.name, stage, name])

    # --- doing ----------------------------------------------------------------------------------------

    def do(self, unit: Job | DueInventories) -> None:
        """Expire or move one object, abort uploads, or take inventories."""
        if isinstance(unit, DueInventories):
            self._take_inventories(unit)
            return
        try:
            if isinstance(unit, CurrentCandidate):
                outcome = self._expiration.expire_current(unit)
                if outcome == KEPT:
                    outcome = self._transition_run.move_current(unit)
            elif isinstance(unit, TransitionCandidate):
                outcome = self._transition_run.move_noncurrent(unit)
            elif isinstance(unit, OrphanCandidate):
                outcome = self._orphan_cleanup.remove_orphan(unit)
            elif isinstance(unit, UnfinishedUpload):
                outcome = self._completion_recovery.finish_upload(unit)
            elif isinstance(unit, NoncurrentCandidate):
                outcome = self._expiration.expire_noncurrent(unit)
            else:
                outcome = self._expiration.abort_uploads(unit)
        except _FAILURES as error:
            self._log_failure(unit.entry, f"cannot process an entry of {unit.entry.name}", error)
            return
        self._counters.add(f"{_COUNTER_OF_UNIT[type(unit).__name__]}.{outcome}")

    def _take_inventories(self, due: DueInventories) -> None:
        for inventory, outcome in self._inventory_run.take(due):
            if isinstance(outcome, UnexpectedResponse):
                what = f"cannot take the inventory {inventory.id} of {due.entry.name}"
                self._log_failure(due.entry, what, outcome)
                continue
            if outcome == NO_DESTINATION:
                self._task.log.warning(
                    f"inventory {inventory.id} of {due.entry.name}: the destination bucket does not exist: "
                    f"{inventory.bucket}"
                )
            self._counters.add(f"inventories.{outcome}")

    def _log_failure(self, entry: RegisteredBucket, text: str, error: SwiftError) -> None:
        self._failed.add(entry.name)
        self._counters.add("errors")
        self._task.log.error(f"ERROR {text}: {error}")

    # --- ending ---------------------------------------------------------------------------------------

    def facts(self) -> dict[str, object]:
        """Return no facts beyond the counts."""
        return {}

    def end(self) -> None:
        """Record the buckets that need no other walk today."""
        if self._context.stop.requested:
            return
        for name in self._failed:
            self._walked.pop(name, None)
        today = int(self._context.clock.time() // self._task.settings.day_s)
        former = {name: seen for name, seen in self._task.walked_buckets.items() if seen[1] == today}
        self._task.walked_buckets = {**former, **self._walked}


def _make_task(parts: DaemonParts) -> DaemonTask:
    settings: LifecycleSettings = parts.settings
    settings = replace(settings, **parse_process_numbers(parts, settings))
    client = own_client(parts, NAME, settings.internal_client_conf_path, settings.request_tries)
    if client is None:
        return IdleTask(NAME)
    return Lifecycle(settings, client, parts.context.telemetry.log)


DAEMON = Daemon(
    NAME,
    "container",
    "End what the lifecycles of S3 buckets say has ended, and take their inventories.",
    LifecycleSettings,
    _make_task,
    add_arguments=make_argument_adder("daemons that share the buckets"),
    conf_name="s3-lifecycle.conf",
    conf_about="The daemon that carries out lifecycles and inventories of S3 buckets, and its pipeline; "
    "one is enough.",
    # Parts, versions and links end as clients would end them.
    pipeline=("slo", "versioned_writes", "symlink"),
    once_per_cluster=True,
)
