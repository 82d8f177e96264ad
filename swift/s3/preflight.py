"""What browsers ask before they send a signed request (spec: middleware.md §19)."""

from __future__ import annotations

from collections.abc import Sequence

from swift.http import fields
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.s3.account import Account, KnownAccounts
from swift.s3.cors import CorsRule, actual_headers, decorate, parsed_rules, preflight_headers
from swift.s3.errors import S3Error
from swift.s3.kept import kept_document
from swift.s3.settings import S3Settings
from swift.s3.target import S3Target

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


# --- the rules of buckets -------------------------------------------------------------------------------


def asked_account(request: Request, target: S3Target, known: KnownAccounts, settings: S3Settings) -> str:
    """Whose bucket a browser asks about, as far as a question without a signature tells; empty: unknown.

    The key of a signed link tells it once the key was seen with a good signature.
    """
    if target.account:
        return target.account
    credential = request.params.get("X-Amz-Credential", "").rsplit("/", 4)[0]
    key = credential or request.params.get("AWSAccessKeyId", "")
    return known.find(request, key) if key else settings.anonymous_account


def bucket_preflight(request: Request, accounts: Sequence[Account], bucket: str) -> Response | None:
    """The answer from the rules of a bucket that may be any of these accounts'.

    None when there are no rules; raises ``S3Error`` when none of them allow it.
    """
    refused: S3Error | None = None
    for account in accounts:
        try:
            rules = _rules(account, bucket)
            if rules:
                return Response(200, preflight_headers(rules, request.headers))
        except S3Error as error:
            refused = error
    if refused is not None:
        raise refused
    return None


def add_cors(request: Request, response: Response, account: Account, bucket: str) -> bool:
    """Add what the bucket's rules say of an answer; return True if they let a browser read it."""
    try:
        rules = _rules(account, bucket)
    except S3Error:
        # The answer says what is the matter.
        return False
    if not rules:
        return False
    found = actual_headers(rules, request.headers["origin"], request.method)
    decorate(response.headers, found)
    return bool(found)


def _rules(account: Account, bucket: str) -> tuple[CorsRule, ...]:
    document = kept_document(account.settings_of(bucket), fields.SYSMETA_S3_BUCKET_CORS)
    return parsed_rules(document) if document else ()
