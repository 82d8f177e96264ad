"""CORS: rules of buckets, their registry, and preflight requests (spec: middleware.md §19)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from swift.base.digits import is_digits
from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.base.memo import SizedCache
from swift.http import environkeys
from swift.http.headers import HeaderMap, utf8_value
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.s3.auth.caller import KnownAccounts
from swift.s3.core import codec
from swift.s3.core.errors import S3Error, invalid_request
from swift.s3.core.names import S3Target
from swift.s3.core.schema import NUMBER_MAX, Kind, Leaf, Record, Texts
from swift.s3.core.session import Session
from swift.s3.core.settings import S3Settings
from swift.s3.core.xml import Group, RepeatedGroup, Tree, Value, trees_of

METHODS = ("GET", "PUT", "POST", "DELETE", "HEAD")
RULES_MAX, ID_MAX, TEXT_MAX = 100, 255, 1024
_VARY = "Origin, Access-Control-Request-Headers, Access-Control-Request-Method"


@dataclass(frozen=True, slots=True)
class CorsRule:
    """Allowed origins, methods and headers; an origin or header may contain one wildcard ``*``."""

    origins: tuple[str, ...]
    methods: tuple[str, ...]
    headers: tuple[str, ...] = ()
    exposed: tuple[str, ...] = ()
    name: str = ""
    max_age_s: int | None = None

    def allows(self, origin: str, method: str) -> bool:
        """Return True if the rule allows a method to an origin."""
        return method in self.methods and any(_matches_wildcard(pattern, origin) for pattern in self.origins)

    def allows_headers(self, names: Sequence[str]) -> bool:
        """Return True if the rule allows these request headers (lower case)."""
        patterns = [pattern.lower() for pattern in self.headers]
        return all(any(_matches_wildcard(pattern, name) for pattern in patterns) for name in names)


def _matches_wildcard(pattern: str, text: str) -> bool:
    start, star, end = pattern.partition("*")
    if not star:
        return text == pattern
    return len(text) >= len(start) + len(end) and text.startswith(start) and text.endswith(end)


# --- documents ----------------------------------------------------------------------------------------


def _parse_text(text: str) -> str:
    text = text.strip()
    if not (0 < len(text) <= TEXT_MAX and text.isprintable()):
        raise S3Error("MalformedXML")
    return text


def _parse_max_age(text: str) -> int | None:
    """Return a number of seconds, None for empty text; a negative one disables caching in browsers."""
    text = text.strip()
    digits = text.removeprefix("-")
    if text and not (is_digits(digits) and len(digits) <= 10 and int(digits) <= NUMBER_MAX):
        raise S3Error("MalformedXML")
    return int(text) if text else None


def _validate_rule(rule: CorsRule) -> None:
    """Raise ``S3Error`` for what no rule may have."""
    for method in rule.methods:
        if method not in METHODS:
            text = f"Found unsupported HTTP method in CORS config. Unsupported method is {method}"
            raise invalid_request(text)
    for what, texts in (("AllowedOrigin", rule.origins), ("AllowedHeader", rule.headers)):
        for text in texts:
            if text.count("*") > 1:
                raise invalid_request(f'{what} "{text}" can not have more than one wildcard.')
    if any("*" in text for text in rule.exposed):
        raise invalid_request("ExposeHeader can not have a wildcard.")
    for what, names in (("AllowedHeader", rule.headers), ("ExposeHeader", rule.exposed)):
        for strange in (text for text in names if not _is_token(text)):
            raise invalid_request(f'{what} "{strange}" contains invalid character.')
    if len(rule.name) > ID_MAX:
        raise S3Error("MalformedXML")


def _is_token(name: str) -> bool:
    return name.isascii() and not set(name) & set(' "(),/:;<=>?@[\\]{}')


_TEXT = Kind(_parse_text)
_RULE = Record(
    CorsRule,
    Leaf("ID", "name"),
    Texts("AllowedMethod", "methods", _TEXT, required=True),
    Texts("AllowedOrigin", "origins", _TEXT, required=True),
    Texts("AllowedHeader", "headers", _TEXT),
    Texts("ExposeHeader", "exposed", _TEXT),
    Leaf("MaxAgeSeconds", "max_age_s", Kind(_parse_max_age)),
    validate=_validate_rule,
)
CORS = Group("CORSConfiguration", RepeatedGroup("CORSRule", *_RULE.elements, required=True))


def parse_rules_document(tree: Tree) -> tuple[CorsRule, ...]:
    """Return the rules in a ``CORSConfiguration`` document; raise ``S3Error``."""
    items = trees_of(tree.get("CORSRule"))
    if len(items) > RULES_MAX:
        raise invalid_request("The number of CORS rules should not exceed allowed limit of 100 rules.")
    return tuple(map(_RULE.read, items))


def render_rules(rules: Sequence[CorsRule]) -> Value:
    """Return the value of a ``CORSConfiguration`` document."""
    return {"CORSRule": [_RULE.write(rule) for rule in rules]}


def encode_rules(rules: Sequence[CorsRule]) -> bytes:
    """Return the rules as stored in the bucket's metadata."""
    return json.dumps([asdict(rule) for rule in rules], separators=(",", ":")).encode()


_RULES: SizedCache[bytes, tuple[CorsRule, ...]] = SizedCache(2 << 20)


def decode_rules(document: bytes) -> tuple[CorsRule, ...]:
    """Return the rules stored in a bucket's metadata; none if they cannot be read."""
    found = _RULES.get(document)
    if found is None:
        try:
            found = tuple(map(_decode_rule, json.loads(document)))
        except (ValueError, TypeError, AttributeError, KeyError):
            found = ()
        _RULES.keep(document, found, len(document))
    return found


def _decode_rule(item: JsonObject) -> CorsRule:
    return CorsRule(
        tuple(item["origins"]),
        tuple(item["methods"]),
        tuple(item["headers"]),
        tuple(item["exposed"]),
        item["name"],
        item["max_age_s"],
    )


# --- responses ----------------------------------------------------------------------------------------


def preflight_headers(rules: Sequence[CorsRule], headers: HeaderMap) -> HeaderMap:
    """Return the headers of a preflight response; raise ``S3Error`` if no rule allows the request."""
    origin, method = headers["origin"], headers.get("access-control-request-method", "")
    if method not in METHODS:
        raise S3Error("BadRequest", f"Invalid Access-Control-Request-Method: {utf8_value(method) or 'null'}")
    words = headers.get("access-control-request-headers", "").split(",")
    names = [name for word in words if (name := word.strip().lower())]
    for rule in rules:
        if rule.allows(origin, method) and rule.allows_headers(names):
            answer = _rule_headers(rule, origin)
            answer["access-control-allow-methods"] = ", ".join(rule.methods)
            if names:
                answer["access-control-allow-headers"] = ", ".join(names)
            if rule.max_age_s is not None:
                answer["access-control-max-age"] = str(rule.max_age_s)
            return answer
    raise S3Error(
        "AccessForbidden",
        "CORSResponse: This CORS request is not allowed. This is usually because the evaluation of Origin, "
        "request method / Access-Control-Request-Method or Access-Control-Request-Headers are not "
        "whitelisted by the resource's CORS spec.",
        details={"Method": method, "ResourceType": "BUCKET"},
    )


def cors_headers(rules: Sequence[CorsRule], origin: str, method: str) -> HeaderMap:
    """Return the CORS headers of a response; only ``vary`` if no rule allows the request."""
    rule = next((rule for rule in rules if rule.allows(origin, method)), None)
    if rule is None:
        return {"vary": _VARY}
    return {**_rule_headers(rule, origin), "access-control-allow-methods": ", ".join(rule.methods)}


def _rule_headers(rule: CorsRule, origin: str) -> HeaderMap:
    allows_all = "*" in rule.origins
    answer = {"access-control-allow-origin": "*" if allows_all else origin, "vary": _VARY}
    if not allows_all:
        answer["access-control-allow-credentials"] = "true"
    if rule.exposed:
        answer["access-control-expose-headers"] = ", ".join(rule.exposed)
    return answer


def replace_cors_headers(headers: HeaderMap, more: Mapping[str, str]) -> None:
    """Replace the container's CORS headers in a response by those of the bucket's rules."""
    for name in [name for name in headers if name.startswith("access-control-")]:
        del headers[name]
    headers.update(more)


# --- the registry -------------------------------------------------------------------------------------
# A preflight request carries no signature, so the bucket's owner is unknown; the rules of
# all buckets of that name count. A permission only lets the browser send the signed request; whether it may
# read the response, the rules of that request's bucket decide. Stale entries do no harm, as the rules are the
# bucket's own.

REGISTRY_ACCOUNT, REGISTRY_CONTAINER = ".s3_cors", "buckets"
CORS_REGISTRY = EntityPath(REGISTRY_ACCOUNT, REGISTRY_CONTAINER)
#: The most accounts that are tried for one name, and the seconds for which they are cached.
ACCOUNTS_MAX, _CACHE_TTL_S = 20, 60
_CACHE_PREFIX = "s3cors/"


def register_bucket(session: Session, request: Request, bucket: str) -> None:
    """Register a bucket with CORS rules under its name; raise ``S3Error``."""
    session.privileged.send_change("PUT", CORS_REGISTRY)
    session.privileged.send_change("PUT", CORS_REGISTRY._replace(obj=f"{bucket}/{session.account}"))
    _invalidate_cache(request, bucket)


def unregister_bucket(session: Session, request: Request, bucket: str) -> None:
    """Remove a bucket without CORS rules from the registry; raise ``S3Error``."""
    session.privileged.send_change(
        "DELETE", CORS_REGISTRY._replace(obj=f"{bucket}/{session.account}"), accept=(404,)
    )
    _invalidate_cache(request, bucket)


def _invalidate_cache(request: Request, bucket: str) -> None:
    cache = request.env.get(environkeys.CACHE)
    if cache is not None:
        cache.delete(_CACHE_PREFIX + bucket)


def list_accounts_with_bucket(session: Session, request: Request, bucket: str) -> list[str]:
    """Return the accounts that have registered a bucket of this name."""
    cache = request.env.get(environkeys.CACHE)
    found = None if cache is None else cache.get(_CACHE_PREFIX + bucket)
    if isinstance(found, list):
        return [str(name) for name in found]
    start = f"{bucket}/"
    rows = session.privileged.list_names(CORS_REGISTRY, prefix=start, limit=ACCOUNTS_MAX)
    names = [name.removeprefix(start) for name in rows]
    if cache is not None:
        cache.set(_CACHE_PREFIX + bucket, names, ttl_s=_CACHE_TTL_S)
    return names


# --- preflight requests -------------------------------------------------------------------------------

ALLOWED_METHODS = "GET, HEAD, PUT, POST, DELETE, OPTIONS"


def configured_preflight(request: Request, settings: S3Settings) -> Response | None:
    """Return the response to an OPTIONS for a signed request, as ``cors_preflight_allow_origin`` has it.

    None for other requests.
    """
    allowed = settings.cors_preflight_allow_origin
    headers = request.headers
    if not allowed or not _announces_signed_request(request):
        return None
    origin = headers["origin"]
    if allowed != ("*",) and origin not in allowed:
        return error_response(401)
    answer = {
        "allow": ALLOWED_METHODS,
        "access-control-allow-methods": ALLOWED_METHODS,
        "access-control-allow-origin": "*" if allowed == ("*",) else origin,
        "vary": "Origin, Access-Control-Request-Headers",
    }
    requested = headers.get("access-control-request-headers")
    if requested:
        words = (word.strip().lower() for word in requested.split(","))
        answer["access-control-allow-headers"] = ", ".join(dict.fromkeys(filter(None, words)))
    return Response(200, answer)


def _announces_signed_request(request: Request) -> bool:
    params = request.params
    if "X-Amz-Credential" in params or "AWSAccessKeyId" in params:
        return True
    requested = request.headers.get("access-control-request-headers", "").lower()
    return "authorization" in {word.strip() for word in requested.split(",")}


# --- the rules of buckets -------------------------------------------------------------------------------


def find_preflight_account(
    request: Request, target: S3Target, known: KnownAccounts, settings: S3Settings
) -> str:
    """Return the account of a preflight request's bucket, empty if it is unknown.

    The access key of a presigned URL identifies it if the key was seen with a valid signature. A request
    that will be signed in its headers may be for any account.
    """
    if target.account:
        return target.account
    credential = request.params.get("X-Amz-Credential", "").rsplit("/", 4)[0]
    key = credential or request.params.get("AWSAccessKeyId", "")
    if key:
        return known.find(request, key)
    return "" if _announces_signed_request(request) else settings.anonymous_account


def bucket_preflight(request: Request, sessions: Sequence[Session], bucket: str) -> Response | None:
    """Return the preflight response by the rules of the bucket in the first of these accounts that allows
    it.

    None without rules; raise ``S3Error`` if no rule allows the request.
    """
    refused: S3Error | None = None
    for session in sessions:
        try:
            rules = _read_rules(session, bucket)
            if rules:
                return Response(200, preflight_headers(rules, request.headers))
        except S3Error as error:
            refused = error
    if refused is not None:
        raise refused
    return None


def add_cors_headers(request: Request, response: Response, session: Session, bucket: str) -> bool:
    """Add the CORS headers of the bucket's rules to a response; return True if the bucket has rules."""
    try:
        rules = _read_rules(session, bucket)
    except S3Error:
        # The response itself reports the error.
        return False
    if not rules:
        return False
    found = cors_headers(rules, request.headers["origin"], request.method)
    replace_cors_headers(response.headers, found)
    return bool(found)


def _read_rules(session: Session, bucket: str) -> tuple[CorsRule, ...]:
    document = codec.CORS.decode(session.bucket_sysmeta(bucket))
    return decode_rules(document) if document else ()
