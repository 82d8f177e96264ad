"""Functions that authorization filters share (spec: middleware.md §1.2, §2)."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from urllib.parse import quote

from swift.http import environkeys
from swift.http.acl import is_referrer_allowed
from swift.http.request import Request
from swift.http.response import Response, error_response

#: Control characters, the quote and the backslash → percent-quoted.
_UNSAFE_IN_REALM = {code: f"%{code:02X}" for code in (*range(32), 34, 92, 127)}


def normalise_prefixes(items: tuple[str, ...]) -> list[str]:
    """Reseller prefixes with their trailing underscore; ``''`` stands for none."""
    prefixes = []
    for item in items or ("",):
        word = item.strip().strip("'\"")
        prefixes.append(word + "_" if word and not word.endswith("_") else word)
    return list(dict.fromkeys(prefixes))


def prefix_of(account: str, prefixes: Iterable[str]) -> str | None:
    """Return the reseller prefix that an account begins with; the empty one matches what no other does."""
    empty = None
    for prefix in prefixes:
        if not prefix:
            empty = ""
        elif account.startswith(prefix):
            return prefix
    return empty


def has_sync_key(request: Request) -> bool:
    """Return True if container sync sent the key of the container, and a time."""
    sync_key = request.env.get(environkeys.SYNC_KEY)
    if not sync_key or "x-timestamp" not in request.headers:
        return False
    offered = request.headers.get("x-container-sync-key", "")
    return hmac.compare_digest(str(sync_key).encode(), offered.encode())


def has_referrer(request: Request, rules: list[str]) -> bool:
    """Return True if the Referer of a request is one that an ACL's ``.r:`` rules let read."""
    return is_referrer_allowed(request.headers.get("referer"), rules)


def unauthorised(request: Request, realm: str | None = None) -> Response:
    """401 with the challenge of public-api.md §3.

    The realm is the account of the path, percent-quoted, or ``realm``, of which only what would end the
    header's value is quoted.
    """
    if realm is None:
        account = request.lossy_path.split("/")[2:3]
        realm = quote(account[0], safe="", errors="surrogateescape") if account and account[0] else "unknown"
    else:
        realm = realm.translate(_UNSAFE_IN_REALM)
    return error_response(401, headers={"www-authenticate": f'Swift realm="{realm}"'})
