"""Last report of a container to its account: the ``reported_*`` columns (spec: account-container.md §14)."""

from __future__ import annotations

from typing import NamedTuple

from swift.container.broker import TABLE, ContainerBroker, ContainerFacts, root_path
from swift.db.stat import as_timestamp


class ContainerReport(NamedTuple):
    """The facts that an account keeps of a container; timestamps are column texts."""

    put_timestamp: str
    delete_timestamp: str
    object_count: int
    bytes_used: int


def report_of(broker: ContainerBroker, info: ContainerFacts) -> ContainerReport | None:
    """Return the report for the account; None if it is current, or the container was never put.

    A shard's objects are counted by its root, so a shard reports that it has none.
    """
    root = root_path(info.metadata)
    counts = (info.object_count, info.bytes_used) if root in (None, broker.own_name) else (0, 0)
    report = ContainerReport(info.put_timestamp, info.delete_timestamp, *counts)
    if not as_timestamp(report.put_timestamp):
        return None
    is_news = (
        as_timestamp(info.put_timestamp) > as_timestamp(info.reported_put_timestamp)
        or as_timestamp(info.delete_timestamp) > as_timestamp(info.reported_delete_timestamp)
        or report.object_count != info.reported_object_count
        or report.bytes_used != info.reported_bytes_used
    )
    return report if is_news else None


def mark_reported(broker: ContainerBroker, report: ContainerReport) -> None:
    """Remember that the account heard this; durable when it returns."""
    broker.write(
        lambda connection: (
            connection.execute(
                f"UPDATE {TABLE} SET reported_put_timestamp = ?, reported_delete_timestamp = ?, "
                "reported_object_count = ?, reported_bytes_used = ?",
                report,
            ).rowcount
        )
    )
