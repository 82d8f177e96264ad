"""The filter ``s3api``: recognizes S3 requests and responds to them (spec: middleware.md §19–22).

A signed request becomes a claim (``auth``), an endpoint (``router``) and a call. The operation's handler
responds to the call with requests to the rest of the pipeline. All other requests pass.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from swift.base.errors import ConfigError
from swift.compose import Services
from swift.gateway.subrequest import drained
from swift.http import environkeys
from swift.http.body import BodyError
from swift.http.etagparameters import move_etag_parameters_to_rows
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.s3.api import (
    acl,
    buckets,
    completion,
    copies,
    delete,
    encryption,
    forms,
    listing,
    multipart,
    objects,
    retention,
)
from swift.s3.api.forms import is_form
from swift.s3.api.writes import CONDITIONAL_OPERATIONS, refuse_conditions
from swift.s3.auth.identify import claim_from_request, is_signed
from swift.s3.config import inventory, table
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
from swift.s3.core.call import XML_TYPE, Call, Features, Handler, as_s3_error, error_document
from swift.s3.core.claim import anonymous_claim
from swift.s3.core.errors import S3Error
from swift.s3.core.metadata import StorageClasses, parse_storage_classes
from swift.s3.core.names import (
    KEY_BYTES_MAX,
    S3Target,
    host_bucket_of,
    is_anonymous_bucket_request,
    is_bucket_name,
    is_s3_only_request,
    parse_target,
)
from swift.s3.core.payload import validate_body_headers
from swift.s3.core.router import OPERATIONS, Endpoint, route
from swift.s3.core.session import KnownAccounts, Session
from swift.s3.core.settings import S3Settings
from swift.s3.policy.authorize import authorize
from swift.telemetry.inforegistry import InfoRegistry
from swift.telemetry.telemetry import Telemetry

#: Operation of ``router.OPERATIONS`` → its handler. The others are NotImplemented.
HANDLERS: dict[str, Handler] = {
    name: handler
    for module in (
        *(buckets, listing, objects, copies, delete, multipart, completion, acl, forms, retention),
        *(encryption, table, inventory),
    )
    for name, handler in module.HANDLERS.items()
}


class S3Api(Filter):
    """Translates S3 requests into Swift requests to the rest of the pipeline."""

    def __init__(
        self, app: App, settings: S3Settings, telemetry: Telemetry, features: Features | None = None
    ):
        super().__init__(app)
        self._settings = settings
        self._features = features or Features()
        self._log = telemetry.log
        self._statsd = telemetry.statsd
        self._known_accounts = KnownAccounts()
        self._access_logs = AccessLogDelivery(
            self.forward, self._log, self._statsd, settings.log_delivery_seconds
        )
        self._storage_domains, self._website_domains = (
            _normalize_domains(settings.storage_domain),
            _normalize_domains(settings.website_domain),
        )

    def handle(self, request: Request) -> Response:
        """Respond to an S3 request; pass all other requests on.

        Requests that an earlier filter has authorized pass unchanged: no authentication filter would
        validate their signatures.
        """
        if request.env.get(environkeys.AUTHORIZE_OVERRIDE):
            return self._forward_swift(request)
        site = host_bucket_of(request, self._website_domains)
        if site:
            return self._add_request_ids(request, self._handle_website(request, site))
        host_bucket = host_bucket_of(request, self._storage_domains)
        if request.method == "OPTIONS" and "origin" in request.headers:
            response = self._handle_preflight(request, host_bucket)
            if response is not None:
                return response
        signed = is_signed(request)
        is_for_s3 = signed or is_anonymous_bucket_request(
            request, host_bucket, self._settings.anonymous_account
        )
        if not is_for_s3 and not is_form(request):
            return self._handle_unsigned(request)
        session, bucket, key, code, begun_s = None, "", "", "", time.time()
        call = request.env.setdefault(environkeys.S3_CALL, {})
        try:
            target = parse_target(request, host_bucket)
            bucket, key = target.bucket, target.key
            call.update(bucket=bucket, key=key)
            session = self._begin_session(request, target, host_bucket, is_signed=signed)
            response = self._dispatch(request, target, session)
        except (S3Error, HTTPError, BodyError) as error:
            known = as_s3_error(error)
            assert known is not None, "all of these carry an answer"
            response, code = self._error_response(request, known), known.code
        if session is not None and bucket:
            self._log_access_at_end(request, response, session, (bucket, key), code, begun_s)
        if bucket and "origin" in request.headers:
            self._add_cors(request, response, session, host_bucket)
        return self._add_request_ids(request, response)

    def _add_cors(
        self, request: Request, response: Response, session: Session | None, host_bucket: str
    ) -> None:
        """Add CORS headers to a response, also to an error response for a bad signature."""
        target = parse_target(request, host_bucket)
        if session is not None and session.account:
            sessions = [session]
        elif is_bucket_name(target.bucket, dns=self._settings.dns_compliant_bucket_names):
            sessions = self._candidate_sessions(request, target)
        else:
            return
        for each in sessions:
            if add_cors_headers(request, response, each, target.bucket):
                return

    def _candidate_sessions(self, request: Request, target: S3Target) -> list[Session]:
        """Return anonymous sessions for the accounts whose bucket a request may name."""
        name = find_preflight_account(request, target, self._known_accounts, self._settings)
        names = (
            [name]
            if name
            else list_accounts_with_bucket(self._anonymous_session(request), request, target.bucket)
        )
        return [self._anonymous_session(request, name) for name in names]

    def _log_access_at_end(
        self,
        request: Request,
        response: Response,
        session: Session,
        names: tuple[str, str],
        code: str,
        begun_s: float,
    ) -> None:
        """Write the request to the bucket's access log, if it has one, after the response was sent."""
        place = log_destination(request, session, names[0])
        if place is None:
            return
        answered_s = time.time()

        def ended(sent_bytes: int, _complete: bool) -> None:
            times = begun_s, answered_s, time.time()
            line = access_log_record(request, response, session, names, code, sent_bytes, times).text
            self._access_logs.add(place, line, request.env.get(environkeys.CACHE))

        response.on_response_end(ended)

    def _add_request_ids(self, request: Request, response: Response) -> Response:
        """Add the headers that all S3 responses have and return the response."""
        if request.expects_continue:
            _handle_expect_continue(request, response)
        txid = str(request.env.get(environkeys.TRANS_ID, ""))
        response.headers["x-amz-id-2"] = txid
        response.headers["x-amz-request-id"] = txid
        return response

    def _handle_preflight(self, request: Request, host_bucket: str) -> Response | None:
        """Return the response to a preflight request for a signed request; None for other requests."""
        try:
            target = parse_target(request, host_bucket)
        except S3Error:
            return None
        response = None
        if is_bucket_name(target.bucket, dns=self._settings.dns_compliant_bucket_names):
            try:
                response = bucket_preflight(request, self._candidate_sessions(request, target), target.bucket)
            except S3Error as error:
                response = self._error_response(request, error)
        return (
            configured_preflight(request, self._settings)
            if response is None
            else self._add_request_ids(request, response)
        )

    def _anonymous_session(self, request: Request, account: str = "") -> Session:
        """Return an anonymous session for an account."""
        return Session.for_claim(
            self.forward, request, anonymous_claim(), self._settings, self._known_accounts, account
        )

    def _handle_website(self, request: Request, bucket: str) -> Response:
        """Return a page of a bucket's web site."""

        def read(key: str) -> Response:
            session = self._anonymous_session(request, owner)
            endpoint = Endpoint(OPERATIONS["GetObject"], bucket, key)
            request.set_query("")
            try:
                call = Call(request, endpoint, session, self._settings, self._features, self._log)
                return HANDLERS["GetObject"](authorize(call))
            except (HTTPError, BodyError) as error:
                raise as_s3_error(error) or error

        owner = self._settings.anonymous_account
        try:
            target = parse_target(request, bucket)
            if not owner or not is_bucket_name(bucket, dns=self._settings.dns_compliant_bucket_names):
                raise S3Error("NoSuchBucket")
            session = self._anonymous_session(request, owner)
            document = codec.WEBSITE.decode(session.bucket_sysmeta(bucket))
            site = decode_site(document) if document else None
            if site is None:
                raise S3Error("NoSuchWebsiteConfiguration" if session.has_bucket(bucket) else "NoSuchBucket")
            return serve_site(request, site, target.key, read)
        except S3Error as error:
            return error_page_response(request, error)

    def _handle_unsigned(self, request: Request) -> Response:
        """Forward an unsigned request; respond AccessDenied if no filter handles it and only S3 can be
        meant.
        """
        is_s3 = is_s3_only_request(request)
        response = self._forward_swift(request)
        kind = response.headers.get("content-type", "")
        if not is_s3 or response.status not in (400, 401, 412) or not kind.startswith("text/html"):
            return response
        drained(response)
        return self._add_request_ids(request, self._error_response(request, S3Error("AccessDenied")))

    def _forward_swift(self, request: Request) -> Response:
        """Forward a request; listings show the S3 ETags of large objects."""
        response = self.forward(request)
        if request.method == "GET":
            entity = request.entity
            if entity is not None and entity.path.container is not None and entity.path.obj is None:
                move_etag_parameters_to_rows(response, _ROW_PARAMETERS, _render_row_parameters)
        return response

    def _begin_session(
        self, request: Request, target: S3Target, host_bucket: str, *, is_signed: bool
    ) -> Session:
        """Return the session of a request; raise ``S3Error``."""
        settings = self._settings
        if is_signed:
            claim = claim_from_request(request, host_bucket, settings, time.time())
            request.env.setdefault(environkeys.S3_CALL, {})["access_key"] = claim.access_key
        else:
            claim = anonymous_claim()
        return Session.for_claim(self.forward, request, claim, settings, self._known_accounts, target.account)

    def _dispatch(self, request: Request, target: S3Target, session: Session) -> Response:
        """Call the operation's handler; raise ``S3Error``, ``HTTPError`` and ``BodyError``."""
        try:
            endpoint = route(request.method, target.bucket, target.key, request.params, request.headers)
            request.env.setdefault(environkeys.S3_CALL, {})["operation"] = endpoint.operation.name
            self._validate_names(target, endpoint)
            validate_body_headers(request.headers, session.claim)
            if endpoint.operation.name not in CONDITIONAL_OPERATIONS:
                refuse_conditions(request)
            if session.is_anonymous and not target.bucket:
                raise S3Error("AccessDenied")
        except S3Error:
            # A wrong signature is reported before any other error.
            session.identify()
            raise
        call = Call(request, endpoint, session, self._settings, self._features, self._log)
        handler = HANDLERS.get(endpoint.operation.name)
        if handler is None:
            session.identify()
            name = endpoint.operation.name
            raise S3Error("NotImplemented", f"{name} is not implemented.", details={"Operation": name})
        try:
            return handler(authorize(call))
        except S3Error as error:
            if error.code == "NoSuchBucket":
                error.details.setdefault("BucketName", target.bucket)
            raise

    def _validate_names(self, target: S3Target, endpoint: Endpoint) -> None:
        """Raise ``S3Error`` for names that no bucket or key can have."""
        bucket = target.bucket
        if bucket and not is_bucket_name(bucket, dns=self._settings.dns_compliant_bucket_names):
            raise S3Error("InvalidBucketName", details={"BucketName": bucket})
        if len(endpoint.key.encode("utf-8", "surrogateescape")) > KEY_BYTES_MAX:
            raise S3Error("KeyTooLongError")

    def _error_response(self, request: Request, error: S3Error) -> Response:
        """Return the response for an error: its XML document, metric and access log note."""
        status, code = error.status, error.code
        if code == "SlowDown" and self._settings.ratelimit_as_client_error:
            status = 429
        self._statsd.increment(f"s3api.{error.metric_suffix}")
        request.env.setdefault(environkeys.LOG_INFO, []).append(
            "s3:err:" + ".".join(filter(None, (error.code, error.reason)))
        )
        headers = {"content-type": XML_TYPE, **error.headers}
        body = b"" if request.method == "HEAD" else error_document(request, error)
        return Response(status, headers, body)


def _normalize_domains(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower().strip(".") for name in names)


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


#: Parameters of the rows of objects.
_ROW_PARAMETERS = ("s3_etag", "s3_class")


def _render_row_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    return {name: f'"{text}"' if name == "s3_etag" else text for name, text in parameters.items()}


def _make_filter(app: App, settings: S3Settings, services: Services) -> S3Api:
    """Return the filter of a configuration section."""
    if "*" in settings.cors_preflight_allow_origin and len(settings.cors_preflight_allow_origin) > 1:
        raise ConfigError("[filter:s3api] cors_preflight_allow_origin: * must stand alone")
    telemetry = services.telemetry()
    info = services.info
    below = info.public()
    multipart = settings.allow_multipart_uploads and "slo" in below
    if settings.allow_multipart_uploads and not multipart:
        telemetry.log.warning(
            "[filter:s3api]: multipart uploads are disabled: add slo after s3api to the pipeline"
        )
    features = Features(
        multipart=multipart,
        versioning="object_versioning" in below,
        encryption=_has_encryption(info) or settings.accept_aes256,
        storage_classes=_storage_classes(settings, services),
    )
    others = info.with_admin()["admin"]
    known = {*below, *(others if isinstance(others, dict) else ())}
    if settings.auth_pipeline_check and not {"tempauth", "s3token"} & known:
        # Third-party filters do not register themselves, so this is a warning only.
        telemetry.log.warning(
            "[filter:s3api]: no authentication filter after s3api in the pipeline validates signatures"
        )
    info.register("s3api", _public_info(settings, features))
    return S3Api(app, settings, telemetry, features)


def _storage_classes(settings: S3Settings, services: Services) -> StorageClasses:
    """Return the storage classes; the cluster's policies are only loaded if classes are configured."""
    if not settings.storage_classes:
        return StorageClasses()
    return parse_storage_classes(settings.storage_classes, services.cluster.policies)


def _has_encryption(info: InfoRegistry) -> bool:
    """Return True if a later filter encrypts everything that is stored."""
    admin = info.with_admin()["admin"]
    facts = admin.get("encryption") if isinstance(admin, dict) else None
    return isinstance(facts, dict) and bool(facts.get("enabled"))


def _public_info(settings: S3Settings, features: Features) -> dict[str, object]:
    return {
        "max_bucket_listing": settings.max_bucket_listing,
        "max_parts_listing": settings.max_parts_listing,
        "max_upload_part_num": settings.max_upload_part_num,
        "max_multi_delete_objects": settings.max_multi_delete_objects,
        "allow_multipart_uploads": features.multipart,
        "min_segment_size": settings.min_segment_size,
        "s3_acl": settings.s3_acl,
    }


FILTER = FilterDeclaration(
    "s3api",
    S3Settings,
    _make_filter,
    position=140,
    default=True,
    small_cluster={
        # SDKs and tools request this by default; a small cluster encrypts nothing.
        "max_upload_part_num": "10000",
        "accept_aes256": "true",
        "storage_classes": "STANDARD:gold, STANDARD_IA:gold, REDUCED_REDUNDANCY:gold",
    },
    left_of={
        "tempauth": "it would handle S3 requests before s3api has read them",
        "keystoneauth": "it would handle S3 requests before s3api has read them",
        "slo": "it would handle S3 requests before s3api has read them",
        "copy": "it would handle S3 requests before s3api has read them",
        "s3token": "nothing would be signed yet",
        "encryption": "it would read and write what is encrypted",
    },
)
