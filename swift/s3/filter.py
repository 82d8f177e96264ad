"""The filter ``s3api``: it recognizes S3 requests and answers them (spec: middleware.md §19–22).

A request with a signature becomes a claim (``signature``), an endpoint (``router``) and a call, which the
handler of its operation answers by asking the rest of the pipeline. Everything else passes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from swift.base.errors import ConfigError
from swift.compose import Services
from swift.gateway.subrequest import drained
from swift.http import environkeys
from swift.http.body import BodyError
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.http.rows import with_row_parameters
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.s3.api import (
    acl,
    buckets,
    completion,
    copies,
    delete,
    forms,
    listing,
    multipart,
    objects,
    retention,
)
from swift.s3.api.call import XML, Call, Features, Handler, as_s3_error, error_document
from swift.s3.api.forms import is_form
from swift.s3.api.metadata import StorageClasses, classes_of
from swift.s3.api.payload import validate_head
from swift.s3.api.router import OPERATIONS, Endpoint, route
from swift.s3.auth.claim import anonymous
from swift.s3.auth.identify import identify, is_signed
from swift.s3.auth.session import KnownAccounts, Session
from swift.s3.config import codec, inventory, table
from swift.s3.config.access_log import AccessLogDelivery, access_log_record, log_destination
from swift.s3.config.cors import accounts_of, add_cors, asked_account, bucket_preflight, preflight
from swift.s3.config.website import error_page_response, parsed_site, serve_site
from swift.s3.errors import S3Error
from swift.s3.names import (
    KEY_BYTES_MAX,
    S3Target,
    allows_anonymous,
    host_bucket_of,
    is_bucket_name,
    only_s3_means,
    target_of,
)
from swift.s3.policy.authorize import authorize
from swift.s3.settings import S3Settings
from swift.telemetry.features import InfoRegistry
from swift.telemetry.telemetry import Telemetry

#: Operation of ``router.OPERATIONS`` → its handler. The others are NotImplemented.
HANDLERS: dict[str, Handler] = {
    name: handler
    for module in (
        *(buckets, listing, objects, copies, delete, multipart, completion, acl, forms, retention),
        *(table, inventory),
    )
    for name, handler in module.HANDLERS.items()
}


class S3Api(Filter):
    """Speaks S3 to clients and Swift to the rest of the pipeline."""

    def __init__(
        self, app: App, settings: S3Settings, telemetry: Telemetry, features: Features | None = None
    ):
        super().__init__(app)
        self._settings = settings
        self._features = features or Features()
        self._log = telemetry.log
        self._statsd = telemetry.statsd
        self._known = KnownAccounts()
        self._logs = AccessLogDelivery(self.forward, self._log, self._statsd, settings.log_delivery_seconds)
        self._domains, self._sites = _domains(settings.storage_domain), _domains(settings.website_domain)

    def handle(self, request: Request) -> Response:
        """Answer an S3 request; others pass, and what a filter in front has authorised as what it is.

        The signature of that would not be checked: filters of authentication let it pass.
        """
        if request.env.get(environkeys.AUTHORIZE_OVERRIDE):
            return self._swift(request)
        site = host_bucket_of(request, self._sites)
        if site:
            return self._named(request, self._site(request, site))
        host_bucket = host_bucket_of(request, self._domains)
        if request.method == "OPTIONS" and "origin" in request.headers:
            response = self._preflight(request, host_bucket)
            if response is not None:
                return response
        signed = is_signed(request)
        is_for_s3 = signed or allows_anonymous(request, host_bucket, self._settings.anonymous_account)
        if not is_for_s3 and not is_form(request):
            return self._unsigned(request)
        request.env[environkeys.S3_REQUEST] = True
        session, bucket, key, code, begun_s = None, "", "", "", time.time()
        try:
            target = target_of(request, host_bucket)
            bucket, key = target.bucket, target.key
            session = self._session(request, target, host_bucket, is_signed=signed)
            response = self._answer(request, target, session)
        except (S3Error, HTTPError, BodyError) as error:
            known = as_s3_error(error)
            assert known is not None, "all of these carry an answer"
            response, code = self._error(request, known), known.code
        if session is not None and bucket:
            self._note(request, response, session, (bucket, key), code, begun_s)
        if bucket and "origin" in request.headers:
            self._add_cors(request, response, session, host_bucket)
        return self._named(request, response)

    def _add_cors(
        self, request: Request, response: Response, session: Session | None, host_bucket: str
    ) -> None:
        """Let a browser read an answer, also that to a signature which says nothing of the account."""
        target = target_of(request, host_bucket)
        if session is not None and session.account:
            sessions = [session]
        elif is_bucket_name(target.bucket, dns=self._settings.dns_compliant_bucket_names):
            sessions = self._sessions_of(request, target)
        else:
            return
        for each in sessions:
            if add_cors(request, response, each, target.bucket):
                return

    def _sessions_of(self, request: Request, target: S3Target) -> list[Session]:
        """Return anonymous sessions for the accounts whose bucket a request may mean."""
        name = asked_account(request, target, self._known, self._settings)
        names = [name] if name else accounts_of(self._anonymous(request), request, target.bucket)
        return [self._anonymous(request, name) for name in names]

    def _note(
        self,
        request: Request,
        response: Response,
        session: Session,
        names: tuple[str, str],
        code: str,
        begun_s: float,
    ) -> None:
        """Have a request be in the log of its bucket, if that has one, once the answer was sent."""
        place = log_destination(request, session, names[0])
        if place is None:
            return
        answered_s = time.time()

        def ended(sent_bytes: int, _complete: bool) -> None:
            times = begun_s, answered_s, time.time()
            line = access_log_record(request, response, session, names, code, sent_bytes, times).text
            self._logs.add(place, line, request.env.get(environkeys.CACHE))

        response.observe_end(ended)

    def _named(self, request: Request, response: Response) -> Response:
        """Return an answer with what all of them say."""
        if request.expects_continue:
            _keep_in_step(request, response)
        txid = str(request.env.get(environkeys.TRANS_ID, ""))
        response.headers["x-amz-id-2"] = txid
        response.headers["x-amz-request-id"] = txid
        return response

    def _preflight(self, request: Request, host_bucket: str) -> Response | None:
        """Return the answer to a preflight request of a signed request; None for other requests."""
        try:
            target = target_of(request, host_bucket)
        except S3Error:
            return None
        response = None
        if is_bucket_name(target.bucket, dns=self._settings.dns_compliant_bucket_names):
            try:
                response = bucket_preflight(request, self._sessions_of(request, target), target.bucket)
            except S3Error as error:
                response = self._error(request, error)
        return preflight(request, self._settings) if response is None else self._named(request, response)

    def _anonymous(self, request: Request, account: str = "") -> Session:
        """Return an anonymous session for an account."""
        return Session.begin(self.forward, request, anonymous(), self._settings, self._known, account)

    def _site(self, request: Request, bucket: str) -> Response:
        """Return a page of a bucket's web site."""

        def read(key: str) -> Response:
            session = self._anonymous(request, owner)
            endpoint = Endpoint(OPERATIONS["GetObject"], bucket, key)
            request.set_query("")
            try:
                call = Call(request, endpoint, session, self._settings, self._features, self._log)
                return HANDLERS["GetObject"](authorize(call))
            except (HTTPError, BodyError) as error:
                raise as_s3_error(error) or error

        owner = self._settings.anonymous_account
        try:
            target = target_of(request, bucket)
            if not owner or not is_bucket_name(bucket, dns=self._settings.dns_compliant_bucket_names):
                raise S3Error("NoSuchBucket")
            session = self._anonymous(request, owner)
            kept = codec.WEBSITE.decode(session.settings_of(bucket))
            site = parsed_site(kept) if kept else None
            if site is None:
                raise S3Error("NoSuchWebsiteConfiguration" if session.has_bucket(bucket) else "NoSuchBucket")
            return serve_site(request, site, target.key, read)
        except S3Error as error:
            return error_page_response(request, error)

    def _unsigned(self, request: Request) -> Response:
        """Pass a request on, unless no filter behind this one answers it and only S3 can be meant."""
        is_s3 = only_s3_means(request)
        response = self._swift(request)
        kind = response.headers.get("content-type", "")
        if not is_s3 or response.status not in (400, 401, 412) or not kind.startswith("text/html"):
            return response
        drained(response)
        return self._named(request, self._error(request, S3Error("AccessDenied")))

    def _swift(self, request: Request) -> Response:
        """Pass a request on; listings show the S3 ETags of large objects."""
        response = self.forward(request)
        if request.method == "GET":
            entity = request.entity
            if entity is not None and entity.path.container is not None and entity.path.obj is None:
                with_row_parameters(response, _OF_ROWS, _rendered)
        return response

    def _session(self, request: Request, target: S3Target, host_bucket: str, *, is_signed: bool) -> Session:
        """Return the session of a request; raise ``S3Error``."""
        settings = self._settings
        if is_signed:
            claim = identify(request, host_bucket, settings, time.time())
        else:
            claim = anonymous()
        return Session.begin(self.forward, request, claim, settings, self._known, target.account)

    def _answer(self, request: Request, target: S3Target, session: Session) -> Response:
        """Return the answer of the operation; raise ``S3Error``, ``HTTPError`` and ``BodyError``."""
        try:
            endpoint = route(request.method, target.bucket, target.key, request.params, request.headers)
            self._check(target, endpoint)
            validate_head(request.headers, session.claim)
            if session.is_anonymous and not target.bucket:
                raise S3Error("AccessDenied")
        except S3Error:
            # A stranger is told of the signature first.
            session.identify()
            raise
        call = Call(request, endpoint, session, self._settings, self._features, self._log)
        handler = HANDLERS.get(endpoint.operation.name)
        if handler is None:
            session.identify()
            raise S3Error("NotImplemented", details={"Operation": endpoint.operation.name})
        try:
            return handler(authorize(call))
        except S3Error as error:
            if error.code == "NoSuchBucket":
                error.details.setdefault("BucketName", target.bucket)
            raise

    def _check(self, target: S3Target, endpoint: Endpoint) -> None:
        """Raise ``S3Error`` for names that no bucket or key has."""
        bucket = target.bucket
        if bucket and not is_bucket_name(bucket, dns=self._settings.dns_compliant_bucket_names):
            raise S3Error("InvalidBucketName", details={"BucketName": bucket})
        if len(endpoint.key.encode("utf-8", "surrogateescape")) > KEY_BYTES_MAX:
            raise S3Error("KeyTooLongError")

    def _error(self, request: Request, error: S3Error) -> Response:
        """Return the document of an error."""
        status, code = error.status, error.code
        if code == "SlowDown" and self._settings.ratelimit_as_client_error:
            status = 429
        self._statsd.increment(f"s3api.{error.metric}")
        request.env.setdefault(environkeys.LOG_INFO, []).append(
            "s3:err:" + ".".join(filter(None, (error.code, error.reason)))
        )
        headers = {"content-type": XML, **error.headers}
        body = b"" if request.method == "HEAD" else error_document(request, error)
        return Response(status, headers, body)


def _domains(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower().strip(".") for name in names)


def _keep_in_step(request: Request, response: Response) -> None:
    """Answer a client that waits for 100 Continue as S3 does.

    SDKs of AWS remember an answer that came instead of it for the next request on the connection. So an empty
    body is asked for too, and who is refused before its body was requested finds the connection closed.
    """
    body = request.body
    if body.received:
        return
    if response.status < 300 and body.length == 0:
        body.read(0)
    elif response.status >= 300:
        response.close_connection = True


#: Parameters of the rows of objects.
_OF_ROWS = ("s3_etag", "s3_class")


def _rendered(parameters: Mapping[str, str]) -> dict[str, str]:
    return {name: f'"{text}"' if name == "s3_etag" else text for name, text in parameters.items()}


def _make(app: App, settings: S3Settings, services: Services) -> S3Api:
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
        encryption=_encrypts(info) or settings.accept_aes256,
        classes=_classes(settings, services),
    )
    others = info.with_admin()["admin"]
    known = {*below, *(others if isinstance(others, dict) else ())}
    if settings.auth_pipeline_check and not {"tempauth", "s3token"} & known:
        # Foreign filters register nothing; what can be known here is only said.
        telemetry.log.warning(
            "[filter:s3api]: no authentication filter after s3api in the pipeline validates signatures"
        )
    info.register("s3api", _info(settings, features))
    return S3Api(app, settings, telemetry, features)


def _classes(settings: S3Settings, services: Services) -> StorageClasses:
    """Return the storage classes; without any the cluster's policies need not be known."""
    if not settings.storage_classes:
        return StorageClasses()
    return classes_of(settings.storage_classes, services.cluster.policies)


def _encrypts(info: InfoRegistry) -> bool:
    """Return True if a filter right of this one stores everything encrypted."""
    admin = info.with_admin()["admin"]
    facts = admin.get("encryption") if isinstance(admin, dict) else None
    return isinstance(facts, dict) and bool(facts.get("enabled"))


def _info(settings: S3Settings, features: Features) -> dict[str, object]:
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
    _make,
    position=140,
    default=True,
    small_cluster={
        # SDKs and tools ask for this by default; nothing is encrypted there.
        "max_upload_part_num": "10000",
        "accept_aes256": "true",
        "storage_classes": "STANDARD:gold, STANDARD_IA:gold, REDUCED_REDUNDANCY:gold",
    },
    left_of={
        "tempauth": "it asks it for what S3 requests are about",
        "keystoneauth": "it asks it for what S3 requests are about",
        "slo": "it asks it for what S3 requests are about",
        "copy": "it asks it for what S3 requests are about",
        "s3token": "nothing would be signed yet",
        "encryption": "it would read and write what is encrypted",
    },
)
