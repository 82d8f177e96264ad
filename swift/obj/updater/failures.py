"""Which containers have waited longest for an update: a bounded memory for the recon file."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from swift.base.timestamp import Timestamp

#: (timestamp, account, container) as JSON has it.
Entry = list[str]


class OldestFailures:
    """The oldest failed update of each container, for the ``entries_max`` containers that wait longest."""

    def __init__(self, entries_max: int):
        self._max = entries_max
        self._oldest: dict[tuple[str, str], Timestamp] = {}

    def add(self, account: str, container: str, timestamp: Timestamp) -> None:
        """An update of this time failed."""
        key = (account, container)
        have = self._oldest.get(key)
        if have is None or timestamp < have:
            self._oldest[key] = timestamp
        if len(self._oldest) > self._max:
            del self._oldest[max(self._oldest, key=self._oldest.__getitem__)]

    def add_entries(self, entries: Iterable[Entry]) -> None:
        """Take over what another share remembers."""
        for text, account, container in entries:
            self.add(account, container, Timestamp(text))

    def entries(self) -> list[Entry]:
        """All of them, oldest first."""
        ordered = sorted(self._oldest.items(), key=lambda item: (item[1].raw, item[0]))
        return [[timestamp.normal, *key] for key, timestamp in ordered]

    def stats(self, now_s: float, dump_count: int) -> dict[str, object]:
        """``object_updater_stats`` of the recon file (spec: replication.md §6); times are Unix seconds."""
        entries = self.entries()
        oldest_s = float(entries[0][0]) if entries else None
        shown = [
            {"timestamp": float(text), "account": account, "container": container}
            for text, account, container in entries[:dump_count]
        ]
        return {
            "failures_oldest_timestamp": oldest_s,
            "failures_oldest_timestamp_age": None if oldest_s is None else now_s - oldest_s,
            "failures_account_container_count": len(entries),
            "failures_oldest_timestamp_account_containers": {
                "oldest_count": len(shown),
                "oldest_entries": shown,
            },
            "tracker_memory_usage": self.memory_bytes(),
        }

    def memory_bytes(self) -> int:
        """About what this remembers costs."""
        size = sys.getsizeof(self._oldest)
        for key, timestamp in self._oldest.items():
            size += sys.getsizeof(key) + sum(map(sys.getsizeof, key)) + sys.getsizeof(timestamp)
        return size

    def __len__(self) -> int:
        return len(self._oldest)
