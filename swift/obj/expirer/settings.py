"""The options of ``[object-expirer]`` (spec: cli-and-config.md §5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import unquote

from swift.base.errors import ConfigError
from swift.cluster.expiry import EXPIRING_ACCOUNT
from swift.config.kinds import COUNT, SECONDS, integer, number
from swift.config.schema import Settings, option
from swift.runtime.daemon import Schedule

_DELAY_PREFIX = "delay_reaping_"


@dataclass(frozen=True)
class ObjectExpirerSettings(Settings):
    """Options of the object expirer: schedule, pace and share of the queue."""

    option_patterns: ClassVar[tuple[str, ...]] = (f"{_DELAY_PREFIX}*",)

    interval: float = option(300.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    report_interval: float = option(300.0, "Seconds between log lines about a long pass.", kind=SECONDS)
    request_tries: int = option(3, "Number of times to try a request.", kind=integer(1))
    concurrency: int = option(1, "Objects deleted at the same time.", kind=integer(1))
    tasks_per_second: float = option(50.0, "Deletions begun per second; 0: any.", kind=number(0))
    processes: int = option(0, "Expirers that share the queue; 0: each does all.", kind=COUNT)
    process: int = option(0, "Number of this process, from 0.", kind=COUNT)
    reclaim_age: int = option(604800, "Seconds after which a task without an object is dropped.", kind=COUNT)
    dequeue_from_legacy: bool = option(
        False, "Process the queue on this node; always on in object-expirer.conf."
    )
    internal_client_conf_path: str = option(
        "/etc/swift/internal-client.conf", "Configuration of the pipeline that deletes objects."
    )
    round_robin_task_cache_size: int = option(
        100_000, "Tasks among which the containers of objects take turns.", kind=integer(1)
    )
    expiring_objects_account_name: str = option(EXPIRING_ACCOUNT[1:], "Account of the queue.")
    conn_timeout: float = option(0.5, "Seconds to wait for a connection to a container server.", kind=SECONDS)
    node_timeout: float = option(10.0, "Seconds to wait for its response.", kind=SECONDS)

    @property
    def schedule(self) -> Schedule:
        """The same for the runner."""
        return Schedule(
            self.interval, self.tasks_per_second, self.concurrency, report_interval_s=self.report_interval
        )

    @property
    def account(self) -> str:
        """The account of the queue."""
        return f".{self.expiring_objects_account_name}"


class Delays:
    """For how long objects of some accounts or containers stay beyond their time."""

    def __init__(self, seconds: Mapping[tuple[str, str | None], float]):
        self._seconds = dict(seconds)

    @classmethod
    def parse(cls, conf: Mapping[str, str]) -> Delays:
        """From the options ``delay_reaping_<account>[/<container>]``; raises ``ConfigError``."""
        found: dict[tuple[str, str | None], float] = {}
        for name, text in conf.items():
            if not name.startswith(_DELAY_PREFIX):
                continue
            account, slash, container = name[len(_DELAY_PREFIX) :].partition("/")
            if not account or (slash and not container) or "/" in container:
                raise ConfigError(f"[object-expirer] {name}: names no account or container")
            try:
                found[unquote(account), unquote(container) if slash else None] = SECONDS.parse(text)
            except ValueError as error:
                raise ConfigError(f"[object-expirer] {name} {error}")
        return cls(found)

    def of(self, account: str, container: str) -> float:
        """Seconds for objects of a container; the most specific option counts."""
        seconds = self._seconds.get((account, container))
        return self._seconds.get((account, None), 0.0) if seconds is None else seconds

    def __repr__(self) -> str:
        return f"Delays({self._seconds})"
