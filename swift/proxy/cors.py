"""Cross-origin requests (spec: public-api.md §14)."""

from __future__ import annotations

from collections.abc import Sequence

from swift.gateway.info import ContainerInfo
from swift.http.request import Request
from swift.http.response import HTML, Response, error_response
from swift.proxy.settings import ProxySettings

SIMPLE_EXPOSED = (
    "cache-control",
    "content-language",
    "content-type",
    "expires",
    "last-modified",
    "pragma",
    "etag",
    "x-timestamp",
    "x-trans-id",
    "x-openstack-request-id",
)


def is_origin_allowed(settings: ProxySettings, info: ContainerInfo, origin: str) -> bool:
    """Return True if the origin, or ``*``, is in the container's or the proxy's list."""
    allowed = {*(info.cors.get("allow_origin") or "").split(), *settings.cors_allow_origin}
    return "*" in allowed or origin in allowed


def preflight_response(
    settings: ProxySettings, info: ContainerInfo | None, request: Request, methods: Sequence[str]
) -> Response:
    """Return the response to OPTIONS on a container or object; ``info`` is None for other paths."""
    allow = ", ".join(methods)
    origin = request.headers.get("origin")
    if not origin or info is None:
        return Response(200, {"allow": allow, "content-type": HTML})
    method = request.headers.get("access-control-request-method")
    if method is None or method not in methods or not is_origin_allowed(settings, info, origin):
        return error_response(401, headers={"allow": allow})
    headers = {"allow": allow, "access-control-allow-methods": allow}
    vary = []
    if (info.cors.get("allow_origin") or "").strip() == "*":
        headers["access-control-allow-origin"] = "*"
    else:
        headers["access-control-allow-origin"] = origin
        vary.append("Origin")
    if info.cors.get("max_age"):
        headers["access-control-max-age"] = str(info.cors["max_age"])
    requested = request.headers.get("access-control-request-headers", "")
    names = [name.strip() for name in requested.split(",") if name.strip()]
    if names:
        headers["access-control-allow-headers"] = ", ".join(dict.fromkeys(names))
        vary.append("Access-Control-Request-Headers")
    if vary:
        headers["vary"] = ", ".join(vary)
    return Response(200, headers)


def add_cors_headers(
    settings: ProxySettings, info: ContainerInfo, request: Request, response: Response
) -> None:
    """Add the CORS headers of an actual request with an Origin."""
    origin = request.headers["origin"]
    if not origin:
        return
    if settings.strict_cors_mode and not is_origin_allowed(settings, info, origin):
        return
    headers = response.headers
    if "access-control-expose-headers" not in headers:
        exposed = dict.fromkeys(SIMPLE_EXPOSED)
        exposed.update(dict.fromkeys(name.lower() for name in settings.cors_expose_headers))
        exposed.update(
            dict.fromkeys(n for n in headers if n.startswith(("x-container-meta-", "x-object-meta-")))
        )
        own = (info.cors.get("expose_headers") or "").replace(",", " ").lower().split()
        exposed.update(dict.fromkeys(own))
        headers["access-control-expose-headers"] = ", ".join(exposed)
    if "access-control-allow-origin" not in headers:
        if (info.cors.get("allow_origin") or "").strip() == "*":
            headers["access-control-allow-origin"] = "*"
        else:
            headers["access-control-allow-origin"] = origin
            headers["vary"] = f"{headers['vary']}, Origin" if "vary" in headers else "Origin"
