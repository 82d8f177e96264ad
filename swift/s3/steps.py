"""The steps of a request to the S3 API before it is routed, one interface for all.

A step gets the exchange and the rest of the steps. It responds itself, or calls the rest and may change the
response. ``STEPS`` is the order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from swift.gateway.subrequest import drained
from swift.http import environkeys
from swift.http.body import BodyError, BytesBody, read_up_to
from swift.http.etagparameters import move_etag_parameters_to_rows
from swift.http.queryapi import QUERY_BYTES_MAX, is_query_request
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.runtime.wsgi import Handle
from swift.s3.api.forms import is_form
from swift.s3.api.objects import read_object
from swift.s3.auth.caller import KnownAccounts, identify_caller
from swift.s3.auth.identify import SESSION_TOKEN_HEADER, claim_from_request, is_signed
from swift.s3.auth.v4 import claim_from_query_api
from swift.s3.config.access_log import AccessLogDelivery, access_log_record, log_destination
from swift.s3.config.cors import (
    add_cors_headers,
    bucket_preflight,
    configured_preflight,
    find_preflight_account,
    list_accounts_with_bucket,
)
from swift.s3.config.website import decode_site, error_page_response, serve_site
from swift.s3.core import codec
from swift.s3.core.call import XML_TYPE, Call, Features, as_s3_error, error_document
from swift.s3.core.checksums import default_algorithm
from swift.s3.core.claim import Claim, anonymous_claim, validate_access_key
from swift.s3.core.errors import S3Error
from swift.s3.core.names import (
    S3Target,
    host_bucket_of,
    is_anonymous_bucket_request,
    is_bucket_name,
    is_s3_only_request,
    parse_target,
)
from swift.s3.core.payload import make_upload
from swift.s3.core.router import OPERATIONS, SELECTORS, Endpoint, route
from swift.s3.core.session import Session
from swift.s3.core.settings import S3Settings
from swift.s3.core.xml import escape
from swift.s3.policy.authorize import authorize
from swift.telemetry.events import Event
from swift.telemetry.log import Log
from swift.telemetry.statsd import Statsd

_ERROR = Event("s3api.{status_and_code}", "Errors of the S3 API, by status and code.")


class Gateway:
    """The parts that all requests of a filter share."""

    def __init__(self, forward: Handle, settings: S3Settings, features: Features, log: Log, statsd: Statsd):
        self.forward = forward
        self.settings = settings
        self.features = features
        self.log = log
        self.statsd = statsd
        self.known_accounts = KnownAccounts()
        self.access_logs = AccessLogDelivery(forward, log, statsd, settings.log_delivery_seconds)
        self.storage_domains = _normalize_domains(settings.storage_domain)
        self.website_domains = _normalize_domains(settings.website_domain)

    def is_bucket_name(self, name: str) -> bool:
        """Return True if a bucket may have the name."""
        return is_bucket_name(name, dns=self.settings.dns_compliant_bucket_names)

    def error_response(self, request: Request, error: S3Error) -> Response:
        """Return the response for an error: its XML document, metric and access log note."""
        status = 429 if error.code == "SlowDown" and self.settings.ratelimit_as_client_error else error.status
        _ERROR.count(self.statsd, status_and_code=error.metric_suffix)
        request.env.setdefault(environkeys.LOG_INFO, []).append(
            "s3:err:" + ".".join(filter(None, (error.code, error.reason)))
        )
        headers = {"content-type": XML_TYPE, **error.headers}
        return Response(status, headers, b"" if request.method == "HEAD" else error_document(request, error))


def _normalize_domains(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower().strip(".") for name in names)


@dataclass(slots=True)
class Exchange:
    """One request on its way through the steps, and what they found out about it."""

    gateway: Gateway
    request: Request
    begun_s: float = field(default_factory=time.time)
    #: The bucket that the host name names; empty for none.
    host_bucket: str = ""
    is_signed: bool = False
    #: Empty until the path was parsed.
    target: S3Target = S3Target("", "")
    #: The caller's session; None until the signature was parsed.
    session: Session | None = None
    #: The code of the S3 error that is the response.
    error_code: str = ""

    @property
    def call_facts(self) -> dict[str, object]:
        """Facts about the request for logs and metrics of other filters."""
        facts: dict[str, object] = self.request.env.setdefault(environkeys.S3_CALL, {})
        return facts

    def new_session(self, claim: Claim, account: str = "") -> Session:
        """Return a session whose caller is not identified yet."""
        gateway = self.gateway
        return Session.for_claim(gateway.forward, self.request, claim, gateway.settings, account)

    def identify(self, session: Session) -> Session:
        """Return the session with its caller identified; raise ``S3Error``."""
        return identify_caller(session, self.gateway.known_accounts)

    def make_call(self, endpoint: Endpoint, session: Session) -> Call:
        """Return the call of an operation."""
        gateway = self.gateway

        def identify_signer(claim: Claim) -> Session:
            return self.identify(self.new_session(claim, session.path_account))

        return Call(
            *(self.request, endpoint, session, gateway.settings, gateway.features, gateway.log),
            identify_signer=identify_signer,
        )


#: The rest of the steps.
Proceed = Callable[[Exchange], Response]


class Step(Protocol):
    """Responds to an exchange, or calls the rest of the steps."""

    def __call__(self, exchange: Exchange, proceed: Proceed) -> Response:
        """Return the response; raise ``S3Error``, ``HTTPError`` and ``BodyError`` below ``render_errors``."""


# --- requests of others -------------------------------------------------------------------------------

#: Parameters of the rows of objects.
_ROW_PARAMETERS = ("s3_etag", "s3_class")


def pass_authorized(exchange: Exchange, proceed: Proceed) -> Response:
    """Pass requests that an earlier filter has authorized: their signatures would not be validated."""
    if exchange.request.env.get(environkeys.AUTHORIZE_OVERRIDE):
        return _forward_swift(exchange)
    return proceed(exchange)


def pass_swift(exchange: Exchange, proceed: Proceed) -> Response:
    """Pass requests that are not of S3; respond AccessDenied if no filter handles one that only S3 has."""
    gateway, request = exchange.gateway, exchange.request
    exchange.is_signed = is_signed(request)
    if (
        exchange.is_signed
        or is_anonymous_bucket_request(request, exchange.host_bucket, gateway.settings.anonymous_account)
        or is_form(request)
    ):
        return proceed(exchange)
    is_s3 = is_s3_only_request(request)
    response = _forward_swift(exchange)
    kind = response.headers.get("content-type", "")
    if not is_s3 or response.status not in (400, 401, 412) or not kind.startswith("text/html"):
        return response
    drained(response)
    return _with_request_ids(request, gateway.error_response(request, S3Error("AccessDenied")))


def pass_query(exchange: Exchange, proceed: Proceed) -> Response:
    """Pass signed forms for STS and IAM to the authentication filter, which validates the signature."""
    gateway, request = exchange.gateway, exchange.request
    if not gateway.features.query_api or not is_query_request(request):
        return proceed(exchange)
    exchange.is_signed = is_signed(request)
    if not exchange.is_signed:
        return gateway.forward(request)
    try:
        body = read_up_to(request.body, QUERY_BYTES_MAX + 1)
        claim = claim_from_query_api(request, body, gateway.settings, time.time())
        validate_access_key(claim.access_key)
    except (S3Error, BodyError) as error:
        known = as_s3_error(error)
        assert known is not None, "both carry an answer"
        return _with_request_ids(request, query_error_response(request, known))
    claim.session_token = request.headers.get(SESSION_TOKEN_HEADER, "")
    session = exchange.new_session(claim)
    request.env[environkeys.S3_AUTH_DETAILS] = session.auth_details
    request.body = BytesBody(body)
    return gateway.forward(request)


def query_error_response(request: Request, error: S3Error) -> Response:
    """Return an error as the query protocol has it."""
    txid = escape(str(request.env.get(environkeys.TRANS_ID, "")))
    inner = f"<Type>Sender</Type><Code>{escape(error.code)}</Code><Message>{escape(error.text)}</Message>"
    document = f"<ErrorResponse><Error>{inner}</Error><RequestId>{txid}</RequestId></ErrorResponse>"
    return Response(error.status, {"content-type": "text/xml"}, document.encode("utf-8", "replace"))


def _forward_swift(exchange: Exchange) -> Response:
    """Forward a request; listings show the S3 ETags of large objects."""
    request = exchange.request
    response = exchange.gateway.forward(request)
    if request.method == "GET":
        entity = request.entity
        if entity is not None and entity.path.container is not None and entity.path.obj is None:
            move_etag_parameters_to_rows(response, _ROW_PARAMETERS, _render_row_parameters)
    return response


def _render_row_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    return {name: f'"{text}"' if name == "s3_etag" else text for name, text in parameters.items()}


# --- request ids --------------------------------------------------------------------------------------


def add_request_ids(exchange: Exchange, proceed: Proceed) -> Response:
    """Add the headers that all S3 responses have."""
    return _with_request_ids(exchange.request, proceed(exchange))


def _with_request_ids(request: Request, response: Response) -> Response:
    if request.expects_continue:
        _handle_expect_continue(request, response)
    txid = str(request.env.get(environkeys.TRANS_ID, ""))
    response.headers.update({"x-amz-id-2": txid, "x-amz-request-id": txid})
    return response


def _handle_expect_continue(request: Request, response: Response) -> None:
    """Handle a client that waits for 100 Continue as S3 does.

    AWS SDKs attribute a final response that replaces 100 Continue to the next request of the connection. So
    an empty body is requested too, and the connection closes after an error before the body was requested.
    """
    body = request.body
    if body.received:
        return
    if response.status < 300 and body.length == 0:
        body.read(0)
    elif response.status >= 300:
        response.close_connection = True


# --- web sites ----------------------------------------------------------------------------------------


def serve_website(exchange: Exchange, proceed: Proceed) -> Response:
    """Respond with a page of a bucket's web site if the host name is that of one."""
    gateway, request = exchange.gateway, exchange.request
    bucket = host_bucket_of(request, gateway.website_domains)
    if not bucket:
        return proceed(exchange)
    try:
        response = _respond_with_page(exchange, bucket)
    except S3Error as error:
        response = error_page_response(request, error)
    return _with_request_ids(request, response)


def _respond_with_page(exchange: Exchange, bucket: str) -> Response:
    gateway, request = exchange.gateway, exchange.request
    owner = gateway.settings.anonymous_account
    target = parse_target(request, bucket)
    if not owner or not gateway.is_bucket_name(bucket):
        raise S3Error("NoSuchBucket")
    session = exchange.new_session(anonymous_claim(), owner)
    document = codec.WEBSITE.decode(session.bucket_sysmeta(bucket))
    site = decode_site(document) if document else None
    if site is None:
        raise S3Error("NoSuchWebsiteConfiguration" if session.has_bucket(bucket) else "NoSuchBucket")

    def read(key: str) -> Response:
        request.set_query("")
        try:
            call = exchange.make_call(Endpoint(OPERATIONS["GetObject"], bucket, key), session)
            return read_object(authorize(call))
        except (HTTPError, BodyError) as error:
            raise as_s3_error(error) or error

    return serve_site(request, site, target.key, read)


# --- CORS ---------------------------------------------------------------------------------------------


def answer_preflight(exchange: Exchange, proceed: Proceed) -> Response:
    """Respond to preflight requests for signed requests."""
    gateway, request = exchange.gateway, exchange.request
    exchange.host_bucket = host_bucket_of(request, gateway.storage_domains)
    if request.method != "OPTIONS" or "origin" not in request.headers:
        return proceed(exchange)
    try:
        target = parse_target(request, exchange.host_bucket)
    except S3Error:
        return proceed(exchange)
    response = None
    if gateway.is_bucket_name(target.bucket):
        try:
            response = bucket_preflight(request, _candidate_sessions(exchange, target), target.bucket)
        except S3Error as error:
            response = gateway.error_response(request, error)
    if response is not None:
        return _with_request_ids(request, response)
    return configured_preflight(request, gateway.settings) or proceed(exchange)


def add_cors(exchange: Exchange, proceed: Proceed) -> Response:
    """Add CORS headers to a response, also to an error response for a bad signature."""
    response = proceed(exchange)
    request, target, session = exchange.request, exchange.target, exchange.session
    if not target.bucket or "origin" not in request.headers:
        return response
    if session is not None and session.account:
        sessions = [session]
    elif exchange.gateway.is_bucket_name(target.bucket):
        sessions = _candidate_sessions(exchange, target)
    else:
        return response
    for each in sessions:
        if add_cors_headers(request, response, each, target.bucket):
            break
    return response


def _candidate_sessions(exchange: Exchange, target: S3Target) -> list[Session]:
    """Return anonymous sessions for the accounts whose bucket a request may name."""
    gateway, request = exchange.gateway, exchange.request
    anonymous = exchange.new_session(anonymous_claim())
    name = find_preflight_account(request, target, gateway.known_accounts, gateway.settings)
    names = [name] if name else list_accounts_with_bucket(anonymous, request, target.bucket)
    return [anonymous._replace(path_account=name) for name in names]


# --- access logs, errors, callers -----------------------------------------------------------------------


def log_access(exchange: Exchange, proceed: Proceed) -> Response:
    """Write the request to the bucket's access log, if it has one, after the response was sent."""
    response = proceed(exchange)
    request, session, target = exchange.request, exchange.session, exchange.target
    if session is None or not target.bucket:
        return response
    place = log_destination(request, session, target.bucket)
    if place is None:
        return response
    answered_s, names, logs = time.time(), (target.bucket, target.key), exchange.gateway.access_logs

    def ended(sent_bytes: int, _complete: bool) -> None:
        times = exchange.begun_s, answered_s, time.time()
        code = exchange.error_code
        line = access_log_record(request, response, session, names, code, sent_bytes, times).text
        logs.add(place, line, request.env.get(environkeys.CACHE))

    response.on_response_end(ended)
    return response


def render_errors(exchange: Exchange, proceed: Proceed) -> Response:
    """Respond with the XML document of an error that a later step raises."""
    try:
        return proceed(exchange)
    except (S3Error, HTTPError, BodyError) as error:
        known = as_s3_error(error)
        assert known is not None, "all of these carry an answer"
        exchange.error_code = known.code
        return exchange.gateway.error_response(exchange.request, known)


def parse_names(exchange: Exchange, proceed: Proceed) -> Response:
    """Parse the bucket and the key."""
    facts = exchange.call_facts
    target = exchange.target = parse_target(exchange.request, exchange.host_bucket)
    facts.update(bucket=target.bucket, key=target.key)
    return proceed(exchange)


def identify(exchange: Exchange, proceed: Proceed) -> Response:
    """Ask the authentication filter for the caller; report a wrong signature before other errors."""
    if exchange.is_signed:
        settings, now_s = exchange.gateway.settings, time.time()
        claim = claim_from_request(exchange.request, exchange.host_bucket, settings, now_s)
        exchange.call_facts["access_key"] = claim.access_key
    else:
        claim = anonymous_claim()
    session = exchange.session = exchange.new_session(claim, exchange.target.account)
    try:
        exchange.session = exchange.identify(session)
    except S3Error as error:
        _note_operation(exchange)
        if error.code == "SignatureDoesNotMatch":
            _validate_small_upload(exchange.request, exchange.target, claim)
        raise
    return proceed(exchange)


def _note_operation(exchange: Exchange) -> None:
    """Note the operation that a refused caller requested, if it is one."""
    request, target = exchange.request, exchange.target
    with suppress(S3Error):
        endpoint = route(request.method, target.bucket, target.key, request.params, request.headers)
        exchange.call_facts["operation"] = endpoint.operation.name


def _validate_small_upload(request: Request, target: S3Target, claim: Claim) -> None:
    """Raise ``RejectedBody`` for a small upload without its declared hash, an error before the signature."""
    is_upload = not (SELECTORS - {"partNumber", "uploadId"}) & request.params.keys()
    if request.method == "PUT" and target.key and is_upload and "x-amz-copy-source" not in request.headers:
        make_upload(request.body, request.headers, claim, None, default_algorithm())


#: The steps, the outermost first.
STEPS: tuple[Step, ...] = (
    # Requests that are not of S3 leave first; most requests of Swift's API pass these five only.
    pass_authorized,
    # The host names of web sites are others than those of the API, so nothing below applies to them.
    serve_website,
    # A preflight request has no signature.
    answer_preflight,
    pass_query,
    pass_swift,
    # From here on every response is one of S3. Errors have request ids, CORS headers and a line in the
    # access log too, so these steps are outside of the one that renders errors.
    add_request_ids,
    add_cors,
    log_access,
    render_errors,
    # The names come first: the access log and CORS need them also if the signature is wrong.
    parse_names,
    identify,
)
