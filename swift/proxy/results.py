"""From many backend answers to the one the client gets (spec: proxy.md §8)."""

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

#: Headers of a backend's answer that are not the client's business.
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
    """A backend's headers without those that belong to its own connection; Etag unquoted."""
    kept = {name: value for name, value in headers.items() if name not in DROPPED}
    if "etag" in kept:
        kept["etag"] = unquote_etag(kept["etag"])
    return kept


def has_timestamp(headers: HeaderMap) -> bool:
    """Return True if a node that responds 404 knows when the entity was deleted."""
    stamp = headers.get(fields.BACKEND_TIMESTAMP)
    try:
        return stamp is not None and Timestamp(stamp) > ZERO
    except InvalidTimestamp:
        return False


def is_unreadable(headers: HeaderMap) -> bool:
    """Return True if a node has the object but cannot read it: no 404 of others proves that it is absent."""
    return fields.BACKEND_UNREADABLE in headers


def best_response(
    answers: Sequence[BackendResponse],
    count: int,
    quorum: int,
    overrides: Mapping[int, int] | None = None,
) -> Response:
    """The answer of a quorum, or 503.

    ``count`` is how many nodes were asked; missing answers count as 503.
    """
    statuses = fill_missing((a.status for a in answers), count)
    position = best_status(statuses, quorum, overrides)
    if position is None or position >= len(answers):
        return error_response(503)
    return response_of(answers[position])


def with_deletion(response: Response, answers: Iterable[BackendResponse]) -> Response:
    """A 404 that says when the entity was deleted, if any node knows; daemons ask that."""
    if response.status == 404:
        stamps = [Timestamp(a.headers[fields.BACKEND_TIMESTAMP]) for a in answers if has_timestamp(a.headers)]
        if stamps:
            response.headers[fields.BACKEND_TIMESTAMP] = max(stamps).internal
    return response


def refused_early(request: Request, answers: Sequence[BackendResponse]) -> Response | None:
    """The answer to a PUT that a node refuses before it takes the body: that one decides.

    What a node says before anything was stored is about the object that was there before.
    """
    statuses = {answer.status for answer in answers}
    if 412 in statuses and "if-none-match" in request.headers:
        return error_response(412)
    if 403 in statuses:
        # It is locked.
        return error_response(403)
    if 409 in statuses:
        return error_response(202)
    return None


def put_response(answers: Sequence[BackendResponse], count: int, quorum: int) -> Response:
    """The answer to a PUT from what nodes said in the end, by quorum.

    A node that has something newer (409) need not store this: where such nodes complete the quorum the
    object is accepted (202) but already superseded.
    """
    stored = sum(1 for answer in answers if answer.status // 100 == 2)
    newer = sum(1 for answer in answers if answer.status == 409)
    if stored < quorum <= stored + newer:
        return error_response(202)
    return best_response(answers, count, quorum)


def with_clock_refusal(
    answers: list[BackendResponse], need: int, nodes: NodeIterator
) -> list[BackendResponse]:
    """The answers of a change; fewer than ``need`` are completed by what says that clocks are the reason."""
    if not nodes.clock_ahead_s or len(answers) >= need:
        return answers
    refusal = BackendResponse(400, {fields.BACKEND_TIMESTAMP_AHEAD: nodes.clock_ahead_s})
    return [*answers, *[refusal] * need]


def response_of(answer: BackendResponse) -> Response:
    """One backend's answer as ours; 503 for a change that it refused because of this proxy's clock."""
    ahead = answer.headers.get(fields.BACKEND_TIMESTAMP_AHEAD)
    if ahead is not None:
        text = f"Nothing was changed: this proxy's clock is {ahead} s ahead of a storage server's.\n"
        return error_response(503, text, content_type=TEXT)
    headers = client_headers(answer.headers)
    headers["content-type"] = HTML
    return Response(answer.status, headers, answer.body, reason=answer.reason or None)
