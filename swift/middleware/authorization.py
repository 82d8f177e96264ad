"""Functions that authorization filters share (spec: middleware.md §1.2, §2)."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from urllib.parse import quote

from swift.http import environkeys
from swift.http.acl import is_referrer_allowed
from swift.http.request import Request
from swift.http.response import HTTPError, Response, error_response

#: Control characters, the double quote and the backslash → their percent-quoted forms.
_REALM_ESCAPES = {code: f"%{code:02X}" for code in (*range(32), 34, 92, 127)}


def normalise_prefixes(items: tuple[str, ...]) -> list[str]:
    """Return reseller prefixes with a trailing underscore; ``''`` stands for no prefix."""
    prefixes = []
    for item in items or ("",):
        prefix = item.strip().strip("'\"")
        prefixes.append(prefix + "_" if prefix and not prefix.endswith("_") else prefix)
    return list(dict.fromkeys(prefixes))


def match_prefix(account: str, prefixes: Iterable[str]) -> str | None:
    """Return the reseller prefix of an account; the empty prefix matches accounts without another one."""
    empty_prefix = None
    for prefix in prefixes:
        if not prefix:
            empty_prefix = ""
        elif account.startswith(prefix):
            return prefix
    return empty_prefix


def find_denial(request: Request, acl: str | None) -> Response | None:
    """Return the denial for a caller without the rights of an ACL; None for an authorized one."""
    authorise: Callable[[Request], Response | None] | None = request.env.get(environkeys.AUTHORIZE)
    if authorise is None:
        return None
    request.acl = acl
    return authorise(request)


def require_access(request: Request, acl: str | None) -> None:
    """Raise ``HTTPError`` with the denial for a caller without the rights of an ACL."""
    denied = find_denial(request, acl)
    if denied is not None:
        raise HTTPError.of(denied)


def has_valid_sync_key(request: Request) -> bool:
    """Return True if container sync sent the container's key and a timestamp."""
    sync_key = request.env.get(environkeys.SYNC_KEY)
    if not sync_key or "x-timestamp" not in request.headers:
        return False
    sent_key = request.headers.get("x-container-sync-key", "")
    return hmac.compare_digest(str(sync_key).encode(), sent_key.encode())


def is_request_referrer_allowed(request: Request, rules: list[str]) -> bool:
    """Return True if the ``.r:`` rules of an ACL allow the Referer of a request to read."""
    return is_referrer_allowed(request.headers.get("referer"), rules)


def respond_to_identity_question(request: Request) -> Response | None:
    """Return the response to an OPTIONS request by which s3api asks who signed; None for other requests.

    The caller is in the environment of the request by then.
    """
    is_question = request.method == "OPTIONS" and environkeys.S3_AUTH_DETAILS in request.env
    return Response(200) if is_question else None


def unauthorized_response(request: Request, realm: str | None = None) -> Response:
    """Return a 401 with the challenge of public-api.md §3.

    The realm is the percent-quoted account of the path, or ``realm`` with unsafe header characters quoted.
    """
    if realm is None:
        account = request.lossy_path.split("/")[2:3]
        realm = quote(account[0], safe="", errors="surrogateescape") if account and account[0] else "unknown"
    else:
        realm = realm.translate(_REALM_ESCAPES)
    return error_response(401, headers={"www-authenticate": f'Swift realm="{realm}"'})
