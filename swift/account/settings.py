"""The options of ``[app:account-server]`` (spec: cli-and-config.md §3)."""

from __future__ import annotations

from dataclasses import dataclass

from swift.config.kinds import COUNT
from swift.config.schema import Settings, option


@dataclass(frozen=True)
class AccountSettings(Settings):
    """What an account server can be told beside where its devices are."""

    db_preallocation: bool = option(False, "Allocate databases in large steps.")
    db_query_logging: bool = option(False, "Log every SQL statement.")
    threads_per_disk: int = option(
        4,
        "Threads per device for long calls, and for all while it is slow or not the only one of its process. "
        "0 runs everything on the event loop.",
        kind=COUNT,
    )
