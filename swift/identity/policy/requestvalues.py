"""Values of any HTTP request for conditions of policies: its time, its address, its headers."""

from __future__ import annotations

import time

from swift.http import environkeys
from swift.http.headers import utf8_value
from swift.http.request import Request


def request_value(request: Request, key: str) -> str | None:
    """Return the value of an ``aws:`` key that does not depend on the caller or the resource."""
    if key == "aws:sourceip":
        return request.remote_addr or request.env.get(environkeys.CLIENT_ADDRESS)
    if key == "aws:securetransport":
        return "true" if request.scheme == "https" else "false"
    if key in _HEADERS:
        value = request.headers.get(_HEADERS[key])
        return None if value is None else utf8_value(value)
    if key == "aws:currenttime":
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return str(int(time.time())) if key == "aws:epochtime" else None


_HEADERS = {"aws:useragent": "user-agent", "aws:referer": "referer"}
