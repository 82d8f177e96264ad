"""The options of ``[s3-notifier]``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from swift.base.errors import ConfigError
from swift.config.kinds import COUNT, SECONDS, integer
from swift.config.schema import Settings, option
from swift.runtime.daemon import Schedule


@dataclass(frozen=True)
class NotifierSettings(Settings):
    """How often the queue is worked on, and which webhooks there are."""

    interval: float = option(5.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)
    request_tries: int = option(3, "How often a request to the cluster is tried.", kind=integer(1))
    concurrency: int = option(8, "Events told at the same time.", kind=integer(1))
    targets: tuple[str, ...] = option(
        (), "Webhooks as name=url; s3api's notification_targets has their names. No other URL is asked."
    )
    webhook_timeout: float = option(
        10.0, "Seconds to wait for each step of a webhook's answer.", kind=SECONDS
    )
    give_up_age: int = option(
        604800, "Seconds after which an event that its webhook never took is dropped.", kind=COUNT
    )
    internal_client_conf_path: str = option(
        "", "The pipeline by which the queue is read; empty: the one of this file.", sample=""
    )

    @property
    def schedule(self) -> Schedule:
        """The same for the runner."""
        return Schedule(self.interval, 0.0, self.concurrency, report_interval_s=self.report_interval)

    def urls(self) -> Mapping[str, SplitResult]:
        """Name → URL; raises ``ConfigError``."""
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
