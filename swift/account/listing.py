"""Account listings as JSON rows (public-api.md §7.2)."""

from __future__ import annotations

from collections.abc import Iterable

from swift.db.listing import PageRow
from swift.db.stat import as_timestamp
from swift.policy.policies import Policies


def as_rows(page: Iterable[PageRow], policies: Policies) -> list[dict[str, object]]:
    """The JSON rows of a page; a policy that this cluster does not know has no name to show."""
    rows: list[dict[str, object]] = []
    for name, objects, size, put, policy_index, directory in page:
        if directory is not None:
            rows.append({"subdir": directory})
            continue
        row = {
            "name": name,
            "count": objects,
            "bytes": size,
            "last_modified": as_timestamp(put).isoformat,
        }
        policy = policies.get(policy_index)
        if policy is not None:
            row["storage_policy"] = policy.name
        rows.append(row)
    return rows
