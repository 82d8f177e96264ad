"""What the conditions of a request are compared with (spec: object-server.md §7)."""

from __future__ import annotations

from swift.base.etag import unquote_etag
from swift.store.api import ObjectState


def condition_etag(etag_is_at: str, state: ObjectState) -> str | None:
    """The ETag that clients know: the first metadata named in X-Backend-Etag-Is-At, else the body's own."""
    for name in etag_is_at.split(","):
        value = metadata_value(state, name.strip())
        if value is not None:
            return unquote_etag(value)
    return state.etag


def metadata_value(state: ObjectState, name: str) -> str | None:
    """Stored metadata by its name in any case."""
    if not name:
        return None
    wanted = name.lower()
    return next((value for key, value in state.metadata.items() if key.lower() == wanted), None)
