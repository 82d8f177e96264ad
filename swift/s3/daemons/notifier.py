"""The notifier: its settings, its webhooks, and its passes over the queue of events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from swift.base.entity import EntityPath
from swift.base.errors import ConfigError, SwiftError
from swift.cluster.outbound import Outbound, OutboundRefused, Trust
from swift.cluster.transport import TransportError
from swift.compose import own_client
from swift.config.kinds import COUNT, SECONDS, integer
from swift.config.schema import Settings, option
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.runtime.daemon import DaemonTask, PassContext, PassReport, Schedule
from swift.runtime.declaration import Daemon, DaemonParts
from swift.runtime.queuetask import IdleTask, QueueTask, iterate_until_error
from swift.s3.config.notifications import EVENTS_ACCOUNT, HOUR_S
from swift.telemetry.log import Log


@dataclass(frozen=True)
class NotifierSettings(Settings):
    """The pace of the notifier, and its webhooks."""

    interval: float = option(5.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)
    request_tries: int = option(3, "Number of times to try a request to the cluster.", kind=integer(1))
    concurrency: int = option(8, "Events to deliver at the same time.", kind=integer(1))
    targets: tuple[str, ...] = option(
        (), "Webhooks as name=url; s3api's notification_targets has their names. Events go to no other URL."
    )
    webhook_timeout: float = option(
        10.0, "Seconds to wait for each step of a webhook's response.", kind=SECONDS
    )
    give_up_age: int = option(
        604800, "Seconds after which an event that its webhook never took is dropped.", kind=COUNT
    )
    internal_client_conf_path: str = option(
        "", "Configuration of the pipeline that reads the queue; empty: the pipeline of this file.", sample=""
    )

    @property
    def schedule(self) -> Schedule:
        """The schedule for the runner."""
        return Schedule(self.interval, 0.0, self.concurrency, report_interval_s=self.report_interval)

    def urls(self) -> Mapping[str, SplitResult]:
        """Return the URL of each name; raise ``ConfigError``."""
        found: dict[str, SplitResult] = {}
        for word in self.targets:
            name, _, text = word.partition("=")
            try:
                url = urlsplit(text)
                is_good = bool(name and url.hostname) and url.scheme in ("http", "https") and url.port != 0
            except ValueError:
                is_good = False
            if not is_good:
                raise ConfigError(f"[s3-notifier] targets: {word!r} is not name=http(s)://host/path")
            found[name] = url
        return found


# --- webhooks -----------------------------------------------------------------------------------------

#: The bytes of a response that are read before the connection is closed.
_RESPONSE_BYTES_MAX = 4096

#: Posts an event to a URL; raises ``DeliveryFailed``.
DeliverEvent = Callable[[SplitResult, bytes], None]


class DeliveryFailed(SwiftError):
    """A webhook did not accept an event."""


class WebhookClient:
    """Sends events to webhooks."""

    def __init__(self, timeout_s: float, outbound: Outbound | None = None):
        self._timeout_s = timeout_s
        self._outbound = outbound or Outbound()

    def __call__(self, url: SplitResult, body: bytes) -> None:
        """Post an event to ``url``; raise ``DeliveryFailed`` without the URL's user and password."""
        where = f"{url.scheme}://{url.hostname}{url.path}"
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        try:
            with self._outbound.connection(
                url.scheme, url.hostname or "", url.port, Trust.OPERATOR, timeout_s=self._timeout_s
            ) as connection:
                headers = {"content-type": "application/json"}
                reply = connection.request("POST", path, headers, body, bytes_max=_RESPONSE_BYTES_MAX)
        except (OutboundRefused, OSError, TransportError, ValueError) as error:
            raise DeliveryFailed(f"{where}: {error!r}")
        if reply.status // 100 != 2:
            raise DeliveryFailed(f"{where} responded {reply.status}")


# --- passes -------------------------------------------------------------------------------------------
# An event leaves the queue only when its webhook has taken it, or when it is too old. A webhook that
# does not respond gets no more events in this pass; other webhooks do.

NAME = "s3-notifier"
COUNTS = ("delivered", "gone", "refused", "waiting", "dropped", "errors")


class QueuedEvent(NamedTuple):
    """An event in the queue."""

    container: str
    name: str

    @property
    def path(self) -> EntityPath:
        """The path of the event's object."""
        return EntityPath(EVENTS_ACCOUNT, self.container, self.name)


class Notifier(QueueTask):
    """The task: the queue is its only share."""

    name = NAME

    def __init__(
        self,
        settings: NotifierSettings,
        urls: Mapping[str, SplitResult],
        client: InternalClient,
        deliver_event: DeliverEvent,
        log: Log,
    ):
        self.settings = settings
        self.urls = urls
        self.client = client
        self.deliver_event = deliver_event
        self.log = log

    def begin(self, share: str, pass_context: PassContext) -> NotifierPass:
        """Return a pass over the queue."""
        return NotifierPass(self, pass_context)

    def report(self, passed: PassReport) -> dict[str, object]:
        """Return the recon facts of the pass."""
        return {"s3_notifier_stats": passed.counts(COUNTS), "s3_notifier_last": passed.ended_s}


class NotifierPass:
    """One pass over the queue."""

    def __init__(self, task: Notifier, pass_context: PassContext):
        self._task = task
        self._context = pass_context
        self._counters = pass_context.counters
        self._containers: list[str] = []
        #: Webhooks that did not accept an event in this pass.
        self._failed_targets: set[str] = set()

    def plan(self) -> Iterator[QueuedEvent]:
        """Yield the events, oldest first."""
        for row in self._task.client.containers(EVENTS_ACCOUNT):
            container = str(row.get("name", ""))
            if not (container.isascii() and container.isdigit()):
                continue
            self._containers.append(container)
            rows = self._task.client.objects(EVENTS_ACCOUNT, container)
            for item in iterate_until_error(
                rows, f"{EVENTS_ACCOUNT}/{container}", self._counters, self._task.log
            ):
                if self._context.stop.requested:
                    return
                yield QueuedEvent(container, str(item.get("name", "")))

    def do(self, unit: QueuedEvent) -> None:
        """Deliver one event, and then delete it from the queue."""
        try:
            self._counters.add(self._deliver(unit))
        except UnexpectedResponse as error:
            self._counters.add("errors")
            self._task.log.error(f"ERROR cannot read or remove {unit.path}: {error}")

    def _deliver(self, unit: QueuedEvent) -> str:
        """Deliver an event and return the outcome; raise ``UnexpectedResponse``."""
        task = self._task
        with task.client.request("GET", unit.path, accept=(2, 404)) as response:
            if response.status == 404:
                # The listing is out of date.
                return "gone"
            body = response.read_body()
        target, event = _parse_event(body)
        url = task.urls.get(target)
        age_s = self._context.clock.time() - int(unit.container)
        if not target or age_s > task.settings.give_up_age:
            if target:
                task.log.error(f"ERROR {target} never accepted {unit.path}; the event is dropped")
            task.client.delete(unit.path)
            return "dropped"
        if url is None or target in self._failed_targets:
            return "waiting"
        try:
            task.deliver_event(url, event)
        except DeliveryFailed as error:
            self._failed_targets.add(target)
            task.log.warning(f"{target} does not accept events: {error}")
            return "refused"
        task.client.delete(unit.path)
        return "delivered"

    def facts(self) -> dict[str, object]:
        """Return no facts beyond the counts."""
        return {}

    def end(self) -> None:
        """Delete empty containers of the queue to which no events are added any more."""
        if self._context.stop.requested:
            return
        client, before_s = self._task.client, self._context.clock.time() - 2 * HOUR_S
        for container in self._containers:
            try:
                if (
                    int(container) < before_s
                    and next(client.objects(EVENTS_ACCOUNT, container), None) is None
                ):
                    client.delete(EntityPath(EVENTS_ACCOUNT, container), accept=(2, 404, 409))
            except UnexpectedResponse as error:
                self._task.log.error(f"ERROR cannot remove {EVENTS_ACCOUNT}/{container}: {error}")


def _parse_event(body: bytes) -> tuple[str, bytes]:
    """Return the target's name and the event to post; empty for an invalid event."""
    try:
        document = json.loads(body)
        return str(document["target"]), json.dumps(document["event"]).encode()
    except (ValueError, TypeError, KeyError):
        return "", b""


def _make_task(parts: DaemonParts) -> DaemonTask:
    settings: NotifierSettings = parts.settings
    urls = settings.urls()
    client = own_client(parts, NAME, settings.internal_client_conf_path, settings.request_tries)
    if client is None:
        return IdleTask(NAME)
    webhooks = WebhookClient(settings.webhook_timeout, Outbound.of_rings(parts.rings))
    return Notifier(settings, urls, client, webhooks, parts.context.telemetry.log)


DAEMON = Daemon(
    NAME,
    "container",
    "Tell webhooks what happened in S3 buckets.",
    NotifierSettings,
    _make_task,
    conf_name="s3-notifier.conf",
    conf_about="The daemon that tells webhooks what happened in S3 buckets, and its pipeline; one is enough.",
    once_per_cluster=True,
)
