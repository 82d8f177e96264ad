"""Routes the requests about static large objects (spec: middleware.md §5)."""

from __future__ import annotations

from collections.abc import Mapping

from swift.base.entity import Entity
from swift.base.hashing import PathHasher
from swift.base.truth import is_true
from swift.compose import Services
from swift.http import environkeys
from swift.http.etagparameters import move_etag_parameters_to_rows
from swift.http.mediatypes import TypeGuesser
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.slo.deletion import ManifestDeletion
from swift.middleware.slo.download import ManifestDownload
from swift.middleware.slo.hidden_segments import HiddenSegments
from swift.middleware.slo.manifest import MIN_SEGMENT_BYTES
from swift.middleware.slo.settings import SloSettings
from swift.middleware.slo.upload import ManifestUpload
from swift.policy.policy import Policies
from swift.telemetry.log import Log

_RESERVED_HEADER_ERROR = (
    "X-Static-Large-Object is a reserved header. To create a static large object add query param "
    "multipart-manifest=put."
)


class Slo(Filter):
    """Stores manifests and serves the large objects that they describe."""

    def __init__(
        self,
        app: App,
        settings: SloSettings,
        hasher: PathHasher,
        guesser: TypeGuesser,
        log: Log,
        policies: Policies | None = None,
    ):
        super().__init__(app)
        self._upload = ManifestUpload(self.forward, settings, guesser, log)
        self._download = ManifestDownload(self.forward, settings, log)
        self._hidden_segments = None
        if settings.hidden_segments and policies is not None:
            self._hidden_segments = HiddenSegments(self.forward, settings, self._upload, policies)
        self._deletion = ManifestDeletion(self.forward, settings, hasher, log)

    def handle(self, request: Request) -> Response:
        """Handle requests that concern manifests; forward all others."""
        entity = request.entity
        if entity is None or is_true(request.env.get(environkeys.SLO_OVERRIDE)):
            return self.forward(request)
        if entity.path.obj is None:
            if (
                self._hidden_segments is not None
                and request.method == "DELETE"
                and entity.path.container is not None
            ):
                return self._hidden_segments.delete_container(request, entity.path)
            response = self.forward(request)
            if request.method == "GET" and entity.path.container is not None:
                move_etag_parameters_to_rows(response, ("slo_etag",), _listing_row)
            return response
        if self._hidden_segments is not None:
            answer = self._hidden_segments.handle(
                request, entity, lambda object_request: self._handle_object(object_request, entity)
            )
            if answer is not None:
                return answer
        return self._handle_object(request, entity)

    def _handle_object(self, request: Request, entity: Entity) -> Response:
        manifest_mode = request.params.get("multipart-manifest")
        if request.method in ("GET", "HEAD"):
            if manifest_mode == "get":
                return self._download.get_manifest(request, entity.version, entity.path)
            return self._download.get_object(request, entity.version, entity.path)
        if request.method == "PUT" and manifest_mode == "put":
            return self._upload.put(request, entity.version, entity.path)
        if request.method == "DELETE" and manifest_mode == "delete":
            return self._deletion.delete(request, entity.version, entity.path)
        if request.method in ("PUT", "POST") and "x-static-large-object" in request.headers:
            raise HTTPError(400, _RESERVED_HEADER_ERROR)
        return self.forward(request)


def _listing_row(parameters: Mapping[str, str]) -> dict[str, str]:
    return {"slo_etag": f'"{parameters["slo_etag"]}"'}


def _make_filter(app: App, settings: SloSettings, services: Services) -> Slo:
    """Return the filter of a configuration section."""
    if settings.hidden_segments:
        services.info.register("slo", {"hidden_segments": True})
    services.info.register(
        "slo",
        {
            "max_manifest_segments": settings.max_manifest_segments,
            "max_manifest_size": settings.max_manifest_size,
            "yield_frequency": int(settings.yield_frequency),
            "min_segment_size": MIN_SEGMENT_BYTES,
            "allow_async_delete": settings.allow_async_delete,
        },
    )
    guesser = TypeGuesser(services.swift_dir)
    cluster = services.cluster
    log = services.telemetry().log
    return Slo(app, settings, cluster.config.hasher, guesser, log, cluster.policies)


FILTER = FilterDeclaration(
    "slo",
    SloSettings,
    _make_filter,
    position=230,
    default=True,
    small_cluster={
        # As many parts as S3 has, with the longest names.
        "max_manifest_segments": "10000",
        "max_manifest_size": "33554432",
    },
    left_of={"encryption": "its own requests must pass through encryption"},
)
