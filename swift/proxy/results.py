"""The response to the client from the responses of the nodes (spec: proxy.md §8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from swift.base.etag import unquote_etag
from swift.base.timestamp import ZERO, InvalidTimestamp, Timestamp
from swift.cluster.placement import NodeIterator
from swift.cluster.quorum import best_status, fill_missing
from swift.cluster.transport import BackendResponse
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTML, TEXT, Response, error_response

#: Headers of a backend's response that the client does not get.
DROPPED = frozenset(
    (
        "date",
        "content-length",
        "content-type",
        "connection",
        "keep-alive",
        "transfer-encoding",
        "x-put-timestamp",
        "x-delete-after",
    )
)


def client_headers(headers: HeaderMap) -> HeaderMap:
    """Return a backend's headers without those that belong to its own connection; Etag unquoted."""
    kept = {name: value for name, value in headers.items() if name not in DROPPED}
    if "etag" in kept:
        kept["etag"] = unquote_etag(kept["etag"])
    return kept


def without_swift_bytes(content_type: str) -> str:
    """Return a content type without the size that listings of large objects carry in it."""
    kind, *parameters = content_type.split(";")
    return ";".join([kind, *(p for p in parameters if not p.strip().startswith("swift_bytes="))])


def has_timestamp(headers: HeaderMap) -> bool:
    """Return True if a 404 says when the entity was deleted."""
    stamp = headers.get(fields.BACKEND_TIMESTAMP)
    try:
        return stamp is not None and Timestamp(stamp) > ZERO
    except InvalidTimestamp:
        return False


def is_unreadable(headers: HeaderMap) -> bool:
    """Return True if a node has the object but cannot read it; then no 404 proves that it is absent."""
    return fields.BACKEND_UNREADABLE in headers


def best_response(
    responses: Sequence[BackendResponse],
    count: int,
    quorum: int,
    overrides: Mapping[int, int] | None = None,
) -> Response:
    """Return the response of a quorum, or 503.

    ``count`` is the number of nodes that were sent the request; missing responses count as 503.
    """
    statuses = fill_missing((a.status for a in responses), count)
    position = best_status(statuses, quorum, overrides)
    if position is None or position >= len(responses):
        return error_response(503)
    return client_response(responses[position])


def with_deletion_time(response: Response, responses: Iterable[BackendResponse]) -> Response:
    """Add the time of deletion to a 404, if a node knows it; daemons need it."""
    if response.status == 404:
        stamps = [
            Timestamp(a.headers[fields.BACKEND_TIMESTAMP]) for a in responses if has_timestamp(a.headers)
        ]
        if stamps:
            response.headers[fields.BACKEND_TIMESTAMP] = max(stamps).internal
    return response


def early_refusal(request: Request, responses: Sequence[BackendResponse]) -> Response | None:
    """Return the response to a PUT that a node refuses before it takes the body; one such node decides.

    A response before anything was stored is about the previous object.
    """
    statuses = {response.status for response in responses}
    if 412 in statuses and "if-none-match" in request.headers:
        return error_response(412)
    if 403 in statuses:
        # It is locked.
        return error_response(403)
    if 409 in statuses:
        return error_response(202)
    return None


def put_response(responses: Sequence[BackendResponse], count: int, quorum: int) -> Response:
    """Return the response to a PUT from the nodes' final responses, by quorum.

    A node that has something newer (409) need not store this: where such nodes complete the quorum the
    object is accepted (202) but already superseded.
    """
    stored = sum(1 for response in responses if response.status // 100 == 2)
    newer = sum(1 for response in responses if response.status == 409)
    if stored < quorum <= stored + newer:
        return error_response(202)
    return best_response(responses, count, quorum)


def with_clock_refusal(
    responses: list[BackendResponse], need: int, nodes: NodeIterator
) -> list[BackendResponse]:
    """Return the responses of a change; fill up to ``need`` with refusals that name clocks as the reason."""
    if not nodes.clock_ahead_s or len(responses) >= need:
        return responses
    refusal = BackendResponse(400, {fields.BACKEND_TIMESTAMP_AHEAD: nodes.clock_ahead_s})
    return [*responses, *[refusal] * need]


def client_response(response: BackendResponse) -> Response:
    """Return a backend's response as the client's; 503 for a change refused because of this proxy's clock."""
    ahead = response.headers.get(fields.BACKEND_TIMESTAMP_AHEAD)
    if ahead is not None:
        text = f"Nothing was changed: this proxy's clock is {ahead} s ahead of a storage server's.\n"
        return error_response(503, text, content_type=TEXT)
    headers = client_headers(response.headers)
    headers["content-type"] = HTML
    return Response(response.status, headers, response.body, reason=response.reason or None)
