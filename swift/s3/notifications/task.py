"""What the notifier does in a pass over the queue of events.

An event leaves the queue only when its webhook has taken it, or when it is too old. A webhook that does not
answer is left alone for the rest of the pass; events of others go on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import SplitResult

from swift.base.entity import EntityPath
from swift.gateway.internal_client import InternalClient, UnexpectedAnswer
from swift.runtime.daemon import PassContext, PassReport
from swift.runtime.queuetask import QueueTask, as_far_as_readable
from swift.s3.notifications.events import ACCOUNT, HOUR_S
from swift.s3.notifications.settings import NotifierSettings
from swift.s3.notifications.webhook import NotTaken, Tell
from swift.telemetry.log import Log

NAME = "s3-notifier"
COUNTS = ("told", "gone", "refused", "waiting", "dropped", "errors")


class QueuedEvent(NamedTuple):
    """An event in the queue."""

    container: str
    name: str

    @property
    def path(self) -> EntityPath:
        """Where it is."""
        return EntityPath(ACCOUNT, self.container, self.name)


class Notifier(QueueTask):
    """The task: the queue is its only share."""

    name = NAME

    def __init__(
        self,
        settings: NotifierSettings,
        urls: Mapping[str, SplitResult],
        client: InternalClient,
        tell: Tell,
        log: Log,
    ):
        self.settings = settings
        self.urls = urls
        self.client = client
        self.tell = tell
        self.log = log

    def begin(self, share: str, pass_context: PassContext) -> NotifierPass:
        """A pass over the queue."""
        return NotifierPass(self, pass_context)

    def report(self, passed: PassReport) -> dict[str, object]:
        """The recon facts of the pass."""
        return {"s3_notifier_stats": passed.counts(COUNTS), "s3_notifier_last": passed.ended_s}


class NotifierPass:
    """One pass over the queue."""

    def __init__(self, task: Notifier, pass_context: PassContext):
        self._task = task
        self._context = pass_context
        self._tally = pass_context.tally
        self._containers: list[str] = []
        #: Webhooks that did not take an event in this pass.
        self._away: set[str] = set()

    def plan(self) -> Iterator[QueuedEvent]:
        """The events, oldest first."""
        for row in self._task.client.containers(ACCOUNT):
            container = str(row.get("name", ""))
            if not (container.isascii() and container.isdigit()):
                continue
            self._containers.append(container)
            rows = self._task.client.objects(ACCOUNT, container)
            for item in as_far_as_readable(rows, f"{ACCOUNT}/{container}", self._tally, self._task.log):
                if self._context.stop.requested:
                    return
                yield QueuedEvent(container, str(item.get("name", "")))

    def do(self, unit: QueuedEvent) -> None:
        """Tell one event, and then forget it."""
        try:
            self._tally.add(self._deliver(unit))
        except UnexpectedAnswer as error:
            self._tally.add("errors")
            self._task.log.error(f"ERROR cannot read or remove {unit.path}: {error}")

    def _deliver(self, unit: QueuedEvent) -> str:
        """What became of it; raises ``UnexpectedAnswer``."""
        task = self._task
        with task.client.ask("GET", unit.path, accept=(2, 404)) as response:
            if response.status == 404:
                # The listing is behind.
                return "gone"
            body = response.read_body()
        target, event = _parsed(body)
        url = task.urls.get(target)
        age_s = self._context.clock.time() - int(unit.container)
        if not target or age_s > task.settings.give_up_age:
            if target:
                task.log.error(f"ERROR {target} never took {unit.path}; it is dropped")
            task.client.delete(unit.path)
            return "dropped"
        if url is None or target in self._away:
            return "waiting"
        try:
            task.tell(url, event)
        except NotTaken as error:
            self._away.add(target)
            task.log.warning(f"{target} does not take events: {error}")
            return "refused"
        task.client.delete(unit.path)
        return "told"

    def facts(self) -> dict[str, object]:
        """Nothing beyond the counts."""
        return {}

    def end(self) -> None:
        """Remove containers of the queue to which nothing comes any more."""
        if self._context.stop.requested:
            return
        client, before_s = self._task.client, self._context.clock.time() - 2 * HOUR_S
        for container in self._containers:
            try:
                if int(container) < before_s and next(client.objects(ACCOUNT, container), None) is None:
                    client.delete(EntityPath(ACCOUNT, container), accept=(2, 404, 409))
            except UnexpectedAnswer as error:
                self._task.log.error(f"ERROR cannot remove {ACCOUNT}/{container}: {error}")


def _parsed(body: bytes) -> tuple[str, bytes]:
    """The name of the webhook, and what it is told; empty for what is no event."""
    try:
        document = json.loads(body)
        return str(document["target"]), json.dumps(document["event"]).encode()
    except (ValueError, TypeError, KeyError):
        return "", b""
