"""What browsers ask before they send a signed request (spec: middleware.md §19)."""

from __future__ import annotations

from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.s3api.settings import S3Settings

METHODS = "GET, HEAD, PUT, POST, DELETE, OPTIONS"


def preflight(request: Request, settings: S3Settings) -> Response | None:
    """The answer to an OPTIONS that asks for a signed request; None when it is about something else."""
    allowed = settings.cors_preflight_allow_origin
    headers = request.headers
    if not allowed or not _is_for_s3(request):
        return None
    origin = headers["origin"]
    if allowed != ("*",) and origin not in allowed:
        return error_response(401)
    answer = {
        "allow": METHODS,
        "access-control-allow-methods": METHODS,
        "access-control-allow-origin": "*" if allowed == ("*",) else origin,
        "vary": "Origin, Access-Control-Request-Headers",
    }
    wanted = headers.get("access-control-request-headers")
    if wanted:
        words = (word.strip().lower() for word in wanted.split(","))
        answer["access-control-allow-headers"] = ", ".join(dict.fromkeys(filter(None, words)))
    return Response(200, answer)


def _is_for_s3(request: Request) -> bool:
    params = request.params
    if "X-Amz-Credential" in params or "AWSAccessKeyId" in params:
        return True
    wanted = request.headers.get("access-control-request-headers", "").lower()
    return "authorization" in {word.strip() for word in wanted.split(",")}
