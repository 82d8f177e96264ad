"""Links by which others read or write an object until a time, without an account."""

from __future__ import annotations

import hmac
import secrets
import time
from typing import NamedTuple
from urllib.parse import quote

from swift.console.core.api import ApiError
from swift.console.core.visit import Route, Visit
from swift.console.core.web import BadForm
from swift.console.users.names import bucket_of, is_s3_bucket
from swift.http.response import Response

#: Seconds for which a link may be valid, by the text that says so.
LIVES = {"hour": 3600, "day": 86400, "week": 7 * 86400}
#: Longer lives are refused in presigned URLs.
_PRESIGNED_S_MAX = 7 * 86400
_METHODS = ("GET", "PUT")
_KEY_HEADERS = ("temp-url-key", "temp-url-key-2")


class SharedLink(NamedTuple):
    """A link that was made."""

    address: str
    method: str
    #: Unix time.
    ends: float
    ends_with_session: bool


def show_sharing(visit: Visit) -> Response:
    """Show the form for a link to an object, or to a new one below a prefix."""
    return _page(visit, None)


def share(visit: Visit) -> Response:
    """Make a link."""
    form = visit.form
    bucket, name = bucket_of(visit.query), form.text("name") or visit.query.text("name")
    method, life = form.text("method", "GET"), form.text("life", "hour")
    if not name or method not in _METHODS or life not in LIVES:
        raise BadForm("form.link")
    now = time.time()
    if form.text("kind") == "tempurl":
        key = _temp_url_key(visit, bucket)
        if not key:
            return visit.refusal(visit.text("share.no_key"), 409)
        ends = int(now) + LIVES[life]
        link = SharedLink(_temp_url(visit, method, bucket, name, ends, key), method, ends, False)
    else:
        if not is_s3_bucket(visit.api, bucket):
            return visit.refusal(visit.text("share.not_s3"))
        rest = int(visit.session.ends - now)
        seconds = max(1, min(LIVES[life], rest, _PRESIGNED_S_MAX))
        address = visit.api.presign(method, bucket, name, seconds)
        link = SharedLink(address, method, now + seconds, seconds < LIVES[life])
    return _page(visit, link)


def _page(visit: Visit, link: SharedLink | None) -> Response:
    bucket, name, prefix = bucket_of(visit.query), visit.query.text("name"), visit.query.text("prefix")
    named = visit.form.text("name") if link else ""
    parts = (named or name).split("/")
    return visit.page(
        "share.html",
        bucket=bucket,
        name=name,
        prefix=prefix,
        named=named or name or prefix,
        link_made=link,
        lives=list(LIVES),
        has_s3=is_s3_bucket(visit.api, bucket),
        has_key=bool(_temp_url_key(visit, bucket)),
        # Clients shorten such paths before they send them.
        is_shortened="." in parts or ".." in parts,
        session_ends=visit.session.ends,
    )


def _temp_url_key(visit: Visit, bucket: str) -> bytes:
    """Return a key of the bucket, or of the account, that the caller may see; empty if there is none."""
    for container, kind in ((bucket, "container"), ("", "account")):
        try:
            headers = visit.api.read("HEAD", container).headers
        except ApiError as error:
            if error.status == 401:
                raise
            continue
        for name in _KEY_HEADERS:
            if key := headers.get(f"x-{kind}-meta-{name}"):
                return key.encode("latin-1", "replace")
    return b""


def _temp_url(visit: Visit, method: str, bucket: str, name: str, ends: int, key: bytes) -> str:
    path = f"/v1/{visit.api.account}/{bucket}/{name}"
    signature = hmac.digest(key, f"{method}\n{ends}\n{path}".encode(), "sha256").hex()
    quoted = quote(path, safe="/-_.~")
    return (
        f"{visit.request.scheme}://{visit.api.host}{quoted}?temp_url_sig={signature}&temp_url_expires={ends}"
    )


def make_key(visit: Visit) -> Response:
    """Give the bucket a key for links; links of the key before end."""
    bucket = bucket_of(visit.query)
    visit.api.read("POST", bucket, headers={"x-container-meta-temp-url-key": secrets.token_urlsafe(32)})
    name, prefix = visit.query.text("name"), visit.query.text("prefix")
    return visit.redirect("/share", bucket=bucket, name=name, prefix=prefix, done="link_key_made")


ROUTES = (
    Route("GET", "/share", show_sharing),
    Route("POST", "/share", share),
    Route("POST", "/share/key", make_key),
)
