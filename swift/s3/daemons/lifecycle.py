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
from swift.s3.api.uploads import Unavailable
from swift.s3.auth.session import sysmeta_of
from swift.s3.config.codec import DamagedConfiguration
from swift.s3.config.inventory import inventories_of
from swift.s3.config.lifecycle import rules_of
from swift.s3.config.lifecyclerules import DAY_S
from swift.s3.daemons.expiration import (
    CHANGED,
    ENDED,
    KEPT,
    LOCKED,
    UNDER_WAY_S,
    CompletionRecovery,
    Expiration,
    UnfinishedUpload,
)
from swift.s3.daemons.inventories import (
    BROKEN_OFF,
    REFUSED,
    TAKEN,
    THERE,
    DueInventories,
    InventoryRun,
    is_due,
)
from swift.s3.daemons.orphans import OrphanCandidate, OrphanCleanup
from swift.s3.daemons.transition import MOVED, TransitionRun
from swift.s3.daemons.walk import (
    CurrentCandidate,
    NoncurrentCandidate,
    RegisteredBucket,
    TransitionCandidate,
    Unit,
    Walk,
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
    processes: int = option(0, "Daemons that share the buckets; 0: each does all.", kind=COUNT)
    process: int = option(0, "Number of this process, from 0.", kind=COUNT)
    internal_client_conf_path: str = option(
        "",
        "Configuration of the pipeline that deletes expired objects; empty: the pipeline of this file.",
        sample="",
    )

    @property
    def schedule(self) -> Schedule:
        """The schedule for the runner."""
        return Schedule(
            self.interval, self.objects_per_second, self.concurrency, report_interval_s=self.report_interval
        )


# --- passes -------------------------------------------------------------------------------------------
# A bucket whose rules have not changed is walked over once a day (UTC): between two midnights nothing
# becomes due. So an idle pass is one listing of the registry. A pass that was cut short goes on where
# it was.

NAME = "s3-lifecycle"
#: Errors that make a pass leave something to the next one.
_FAILURES = (UnexpectedResponse, Unavailable, DamagedConfiguration)
_KINDS = {
    "CurrentCandidate": "objects",
    "NoncurrentCandidate": "versions",
    "TransitionCandidate": "versions",
    "UploadCandidates": "uploads",
    "OrphanCandidate": "leftovers",
    "UnfinishedUpload": "unfinished",
}
#: What is counted of a pass.
COUNTS = (
    *("buckets", "forgotten", "errors"),
    *(
        f"{kind}.{outcome}"
        for kind in dict.fromkeys(_KINDS.values())
        for outcome in (ENDED, MOVED, KEPT, CHANGED, LOCKED)
    ),
    *(f"inventories.{outcome}" for outcome in (TAKEN, THERE, REFUSED, BROKEN_OFF)),
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
        self.walked: dict[str, tuple[Timestamp, int]] = {}

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

    def is_mine(self, entry: RegisteredBucket) -> bool:
        """Return True if a bucket is this process's."""
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
            task.client,
            pass_context.clock.time,
            lambda: pass_context.stop.requested,
            task.settings.page_size,
        )
        self._ending = Expiration(
            task.client, pass_context.clock.time, pass_context.stop.wait, task.settings.abort_grace
        )

        self._moving = TransitionRun(task.client, pass_context.clock.time)
        page_size, age_s = task.settings.page_size, task.settings.orphan_age
        self._leftovers = OrphanCleanup(task.client, pass_context.clock.time, page_size, age_s)
        under_way_s = min(UNDER_WAY_S, age_s)
        self._finishing = CompletionRecovery(task.client, pass_context.clock.time, page_size, under_way_s)

    # --- planning -------------------------------------------------------------------------------------

    def plan(self) -> Iterator[Job | DueInventories]:
        """Yield candidates for expiration and transition, and due inventories, bucket by bucket."""
        dues: list[DueInventories] = []
        position = self._context.cursor.position
        done = position if isinstance(position, list) and len(position) == 3 else ["", "", ""]
        for entry in registered_buckets(self._task.client):
            if self._context.stop.requested:
                return
            if entry.name < str(done[0]) or not self._task.is_mine(entry):
                continue
            # In the bucket in which a former process was, it goes on behind what that had done.
            stage, after = (str(done[1]), str(done[2])) if entry.name == done[0] else ("", "")
            today = int(self._context.clock.time() // DAY_S)
            if not stage and self._task.walked.get(entry.name) == (entry.changed, today):
                continue
            try:
                yield from self._bucket(entry, stage, after, dues)
            except _FAILURES as error:
                self._fail(entry, f"cannot go on with {entry.name}", error)
            self._walked[entry.name] = (entry.changed, today)
        # Inventories take long, so they run after all lifecycle work.
        yield from dues

    def _bucket(
        self, entry: RegisteredBucket, stage: str, after: str, dues: list[DueInventories]
    ) -> Iterator[Job]:
        client, now_s = self._task.client, self._context.clock.time()
        headers = client.head(entry.path)
        sysmeta = sysmeta_of(headers or {})
        stored_rules = rules_of(sysmeta)
        rules = [rule for rule in stored_rules if rule.is_enabled]
        inventories = inventories_of(sysmeta)
        containers = self._leftovers.containers(entry)
        if not (containers or (headers is not None and (stored_rules or inventories))):
            unregister_bucket(client, entry)
            self._counters.add("forgotten")
            return
        if headers is None:
            yield from self._bucket_gone(entry, containers)
            return
        self._counters.add("buckets")
        walk = Walk(client, entry, rules, now_s, self._task.settings.page_size)
        if stage != "uploads" and any(rule.is_about_objects for rule in rules):
            listed = walk.versions if "x-versions-enabled" in headers else walk.objects
            yield from listed(after, lambda name: self._note(entry, "objects", name))
            after = ""
        if any(rule.abort_days is not None for rule in rules):
            yield from walk.uploads(after, lambda name: self._note(entry, "uploads", name))
        yield from self._finishing.find(entry)
        versioned = "x-versions-enabled" in headers
        if self._leftovers.is_day(entry):
            yield from self._leftovers.find(entry, containers)
        due = [item for item in inventories.values() if is_due(item, now_s)]
        if due:
            dues.append(DueInventories(entry, due, versioned))

    def _bucket_gone(self, entry: RegisteredBucket, containers: Sequence[EntityPath]) -> Iterator[Job]:
        """Return the remains of uploads that were under way when their bucket was deleted."""
        client, now_s = self._task.client, self._context.clock.time()
        yield from self._finishing.find(entry)
        before_s = now_s - self._task.settings.orphan_age
        yield from Walk(client, entry, [], now_s, self._task.settings.page_size).uploads_before(before_s)
        yield from self._leftovers.find(entry, containers)
        for segments in containers:
            # One that is not empty yet goes in a later pass.
            client.delete(segments, accept=(2, 404, 409))

    def _note(self, entry: RegisteredBucket, stage: str, name: str) -> None:
        self._context.cursor.note([entry.name, stage, name])

    # --- doing ----------------------------------------------------------------------------------------

    def do(self, unit: Job | DueInventories) -> None:
        """End or move one thing, or end some uploads, or take an inventory."""
        if isinstance(unit, DueInventories):
            self._take(unit)
            return
        try:
            if isinstance(unit, CurrentCandidate):
                outcome = self._ending.current(unit)
                if outcome == KEPT:
                    outcome = self._moving.current(unit)
            elif isinstance(unit, TransitionCandidate):
                outcome = self._moving.aged(unit)
            elif isinstance(unit, OrphanCandidate):
                outcome = self._leftovers.end(unit)
            elif isinstance(unit, UnfinishedUpload):
                outcome = self._finishing.finish(unit)
            elif isinstance(unit, NoncurrentCandidate):
                outcome = self._ending.former(unit)
            else:
                outcome = self._ending.uploads(unit)
        except _FAILURES as error:
            self._fail(unit.entry, f"cannot end a part of {unit.entry.name}", error)
            return
        self._counters.add(f"{_KINDS[type(unit).__name__]}.{outcome}")

    def _take(self, due: DueInventories) -> None:
        for inventory, outcome in self._inventory_run.take(due):
            if isinstance(outcome, UnexpectedResponse):
                what = f"cannot take the inventory {inventory.id} of {due.entry.name}"
                self._fail(due.entry, what, outcome)
                continue
            if outcome == REFUSED:
                self._task.log.warning(
                    f"inventory {inventory.id} of {due.entry.name}: the destination bucket does not exist: "
                    f"{inventory.bucket}"
                )
            self._counters.add(f"inventories.{outcome}")

    def _fail(self, entry: RegisteredBucket, what: str, error: SwiftError) -> None:
        self._failed.add(entry.name)
        self._counters.add("errors")
        self._task.log.error(f"ERROR {what}: {error}")

    # --- ending ---------------------------------------------------------------------------------------

    def facts(self) -> dict[str, object]:
        """Return no facts beyond the counts."""
        return {}

    def end(self) -> None:
        """Remember what need not be walked over again today."""
        if self._context.stop.requested:
            return
        for name in self._failed:
            self._walked.pop(name, None)
        today = int(self._context.clock.time() // DAY_S)
        former = {name: seen for name, seen in self._task.walked.items() if seen[1] == today}
        self._task.walked = {**former, **self._walked}


def _make(parts: DaemonParts) -> DaemonTask:
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
    _make,
    add_arguments=make_argument_adder("daemons that share the buckets"),
    conf_name="s3-lifecycle.conf",
    conf_about="The daemon that carries out lifecycles and inventories of S3 buckets, and its pipeline; "
    "one is enough.",
    # Parts, versions and links end as clients would end them.
    pipeline=("slo", "versioned_writes", "symlink"),
    once_per_cluster=True,
)
