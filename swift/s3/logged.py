"""From a request and its answer to the line of its bucket's access log."""

from __future__ import annotations

from swift.base.digits import is_digits
from swift.gateway.info import known_container
from swift.http import environkeys, fields
from swift.http.request import Request
from swift.http.response import Response
from swift.s3.account import Account
from swift.s3.logdelivery import LogPlace
from swift.s3.serverlog import LoggedRequest, operation_of, target_of

_KEY = fields.SYSMETA_S3_BUCKET_LOGGING.removeprefix(fields.CONTAINER_SYSMETA)
_SIGNATURES = {"AWS": "SigV2", "AWS4-HMAC-SHA256": "SigV4"}
_AUTHENTICATIONS = {"REST-HEADER": "AuthHeader", "REST-QUERY-STRING": "QueryString", "POST": "-"}


def log_place(request: Request, account: Account, bucket: str) -> LogPlace | None:
    """Where the log of a bucket goes; None when it has none, or nobody knows whose bucket it is."""
    # The rules of the bucket were asked for before; for its log alone nobody is asked.
    known = known_container(request, account.name, bucket) if account.name else None
    sysmeta = known.get("sysmeta") if known is not None else None
    target = target_of(sysmeta.get(_KEY)) if isinstance(sysmeta, dict) else None
    return None if target is None else LogPlace(account.name, target)


def log_entry(
    request: Request,
    response: Response,
    account: Account,
    names: tuple[str, str],
    code: str,
    sent_bytes: int,
    times: tuple[float, float, float],
) -> LoggedRequest:
    """The entry of a request that was answered; ``times`` (Unix seconds) are when it began, was answered and
    ended.
    """
    bucket, key = names
    begun_s, answered_s, ended_s = times
    facts = account.claim.facts(begun_s)
    size = response.headers.get("content-length") if request.method == "GET" else None
    if request.method == "PUT" and key:
        size = str(request.body.received)
    return LoggedRequest(
        owner=account.name,
        bucket=bucket,
        key=key,
        when_s=begun_s,
        address=request.remote_addr or "",
        requester=account.claim.access_key if account.home else "",
        txid=str(request.env.get(environkeys.TRANS_ID, "")),
        operation=operation_of(request.method, key, request.params, request.headers),
        line=f"{request.method} {request.path_qs} HTTP/1.{request.http_minor}",
        status=response.status,
        error=code,
        sent_bytes=sent_bytes,
        object_bytes=int(size) if size is not None and is_digits(size) and key else None,
        total_s=ended_s - begun_s,
        turnaround_s=answered_s - begun_s,
        headers=request.headers,
        version=response.headers.get("x-amz-version-id", ""),
        signature=_SIGNATURES.get(facts.get("s3:signatureversion", ""), ""),
        authentication=_AUTHENTICATIONS.get(facts.get("s3:authtype", ""), ""),
    )
