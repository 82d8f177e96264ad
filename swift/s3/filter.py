"""The filter ``s3api``: routes S3 requests to the handlers of operations (spec: middleware.md §19–22).

A request passes the ``steps`` first: they recognize requests of S3 and identify the caller. It then becomes
an endpoint (``core.router``) and a call, to which the operation's handler responds with requests to the rest
of the pipeline.
"""

from __future__ import annotations

from functools import partial

from swift.base.errors import ConfigError
from swift.compose import Services
from swift.http.request import Request
from swift.http.response import Response
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
from swift.s3.api.writes import CONDITIONAL_OPERATIONS, refuse_conditions
from swift.s3.config import inventory, table
from swift.s3.core.call import Features, Handler
from swift.s3.core.errors import S3Error
from swift.s3.core.metadata import StorageClasses, parse_storage_classes
from swift.s3.core.names import KEY_BYTES_MAX, S3Target
from swift.s3.core.payload import validate_body_headers
from swift.s3.core.router import route
from swift.s3.core.settings import S3Settings
from swift.s3.policy.authorize import authorize
from swift.s3.steps import STEPS, Exchange, Gateway, Proceed
from swift.telemetry.inforegistry import InfoRegistry
from swift.telemetry.telemetry import Telemetry

#: The authentication filter that serves STS and IAM.
QUERY_FILTER = "swiftauth"
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
        self._gateway = Gateway(
            self.forward, settings, features or Features(), telemetry.log, telemetry.statsd
        )
        self._serve: Proceed = _serve_operation
        for step in reversed(STEPS):
            self._serve = partial(step, proceed=self._serve)

    def handle(self, request: Request) -> Response:
        """Respond to an S3 request; pass all other requests on."""
        return self._serve(Exchange(self._gateway, request))


def _serve_operation(exchange: Exchange) -> Response:
    """Call the operation's handler; raise ``S3Error``, ``HTTPError`` and ``BodyError``."""
    request, target, session = exchange.request, exchange.target, exchange.session
    assert session is not None, "the caller is identified before"
    endpoint = route(request.method, target.bucket, target.key, request.params, request.headers)
    name = endpoint.operation.name
    exchange.call_facts["operation"] = name
    _validate_names(exchange.gateway, target)
    validate_body_headers(request.headers, session.claim)
    if name not in CONDITIONAL_OPERATIONS:
        refuse_conditions(request)
    if session.is_anonymous and not target.bucket:
        raise S3Error("AccessDenied")
    handler = HANDLERS.get(name)
    if handler is None:
        raise S3Error("NotImplemented", f"{name} is not implemented.", details={"Operation": name})
    try:
        return handler(authorize(exchange.make_call(endpoint, session)))
    except S3Error as error:
        if error.code == "NoSuchBucket":
            error.details.setdefault("BucketName", target.bucket)
        raise


def _validate_names(gateway: Gateway, target: S3Target) -> None:
    """Raise ``S3Error`` for names that no bucket or key can have."""
    if target.bucket and not gateway.is_bucket_name(target.bucket):
        raise S3Error("InvalidBucketName", details={"BucketName": target.bucket})
    if len(target.key.encode("utf-8", "surrogateescape")) > KEY_BYTES_MAX:
        raise S3Error("KeyTooLongError")


def _make_filter(app: App, settings: S3Settings, services: Services) -> S3Api:
    """Return the filter of a configuration section."""
    if "*" in settings.cors_preflight_allow_origin and len(settings.cors_preflight_allow_origin) > 1:
        raise ConfigError("[filter:s3api] cors_preflight_allow_origin: * allows no further origins")
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
        query_api=QUERY_FILTER in info.public(),
        encryption=_has_encryption(info) or settings.accept_aes256,
        storage_classes=_storage_classes(settings, services),
    )
    others = info.with_admin()["admin"]
    known = {*below, *(others if isinstance(others, dict) else ())}
    if settings.auth_pipeline_check and not {QUERY_FILTER, "tempauth", "s3token"} & known:
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
        "tempauth": "tempauth validates the S3 signature",
        "swiftauth": "swiftauth validates the S3 signature",
        "keystoneauth": "keystoneauth authorizes the translated request",
        "slo": "s3api translates S3 requests",
        "copy": "s3api translates S3 requests",
        "s3token": "s3api reads the signature",
        "encryption": "its own requests must pass through encryption",
    },
)
