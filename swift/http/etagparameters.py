"""Parameters that filters append to the ETag of a container's row, and their keys in listings.

The row of a large object or a link has a hash like ``<md5>; slo_etag=<md5>``: a filter takes its own
parameters out of it again, in JSON listings as they come from the container (public-api.md §7.2).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping

from swift.http.response import Response

#: No listing that is rewritten is larger, bytes.
LISTING_BYTES_MAX = 64 << 20


#: Returns the listing keys for the parameters of one row.
MakeListingKeys = Callable[[Mapping[str, str]], Mapping[str, object]]


def move_etag_parameters_to_rows(response: Response, names: Collection[str], show: MakeListingKeys) -> None:
    """Move parameters of the hashes of a JSON listing to keys of the rows; others stay where they are."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if not response.is_success or kind != "application/json":
        return
    if int(response.headers.get("content-length") or 0) > LISTING_BYTES_MAX:
        return
    body = response.read_body(2 * LISTING_BYTES_MAX)
    if not any(f" {name}=".encode() in body for name in names):
        return
    rows = json.loads(body)
    for row in rows:
        value = row.get("hash")
        if isinstance(value, str) and ";" in value:
            _move_parameters(row, value, names, show)
    response.body = json.dumps(rows).encode("ascii")
    response.headers["content-length"] = str(len(response.body))


def _move_parameters(
    row: dict[str, object], value: str, names: Collection[str], show: MakeListingKeys
) -> None:
    etag, *parameters = value.split(";")
    kept, taken = [], {}
    for parameter in parameters:
        name, _, text = parameter.strip().partition("=")
        if name in names:
            taken[name] = text
        else:
            kept.append(parameter)
    row["hash"] = ";".join([etag, *kept])
    if taken:
        row.update(show(taken))


def add_etag_parameters(override: str, etag: str, parameters: Mapping[str, str]) -> str:
    """Return the ETag of a row with more parameters; ``override`` is the value from other filters.

    They may leave its beginning open: then it is ``etag``.
    """
    base, *others = (part.strip() for part in override.split(";"))
    added = (f"{name}={value}" for name, value in parameters.items())
    return "; ".join([base or etag, *filter(None, others), *added])


def parse_etag_parameters(override: str) -> dict[str, str]:
    """Return the parameters of a row's ETag."""
    _base, *parts = override.split(";")
    pairs = (part.strip().partition("=") for part in parts)
    return {name: value for name, _, value in pairs}
