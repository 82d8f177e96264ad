"""Requests that a filter or the proxy makes on its own while answering another one (spec: proxy.md §3)."""

from __future__ import annotations

from typing import Any

from swift.http.body import RequestBody
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response

#: What a sub-request inherits from the environment of its parent.
INHERITED_KEYS = (
    "swift.cache",
    "swift.source",
    "swift.trans_id",
    "swift.authorize_override",
    "swift.authorize",
    "swift.infocache",
    "swift.base_labels",
    "swift.shard_listing_history",
    "REMOTE_USER",
)
INHERITED_HEADERS = (
    "host",
    "origin",
    "access-control-request-method",
    "x-user-id",
    "x-project-id",
    "referer",
    "x-trans-id",
)
PRE_AUTHED_USER = ".wsgi.pre_authed"


def _allow(_request: Request) -> None:
    """The authorisation callback of pre-authorised sub-requests."""


def make_subrequest(
    parent: Request,
    method: str,
    raw_path: str,
    *,
    headers: HeaderMap | None = None,
    body: RequestBody | bytes = b"",
    query: str = "",
    source: str | None = None,
    agent: str = "%(orig)s",
) -> Request:
    """A request with its own environment that carries over what proxy.md §3 lists.

    ``agent`` is a template for the User-Agent; ``%(orig)s`` is the parent's. It comes from no client address,
    so that logs do not count it as the client's.
    """
    env: dict[str, Any] = {key: parent.env[key] for key in INHERITED_KEYS if key in parent.env}
    env.setdefault("swift.infocache", parent.env.setdefault("swift.infocache", {}))
    if source:
        env["swift.source"] = source
    merged = {name: parent.headers[name] for name in INHERITED_HEADERS if name in parent.headers}
    user_agent = (agent % {"orig": parent.headers.get("user-agent", "")}).strip()
    if user_agent:
        merged["user-agent"] = user_agent
    if headers:
        merged.update(headers)
    request = Request(
        method,
        raw_path,
        merged,
        body,
        query=query,
        env=env,
        scheme=parent.scheme,
    )
    request.http_minor = parent.http_minor
    return request


def preauthorise(request: Request) -> Request:
    """Let a sub-request do what its originating user may not; returns it."""
    request.env["swift.authorize"] = _allow
    request.env["swift.authorize_override"] = True
    request.env["REMOTE_USER"] = PRE_AUTHED_USER
    request.env["swift_owner"] = True
    return request


def drained(response: Response) -> Response:
    """The response with its body read and dropped, so that its connection is free again."""
    response.discard()
    response.ended(0, True)
    return response
