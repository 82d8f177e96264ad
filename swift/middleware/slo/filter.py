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
from swift.middleware.slo.download import Download
from swift.middleware.slo.hidden import HiddenSegments
from swift.middleware.slo.manifest import MIN_SEGMENT_BYTES
from swift.middleware.slo.removal import Removal
from swift.middleware.slo.settings import SloSettings
from swift.middleware.slo.upload import ManifestUpload
from swift.policy.policy import Policies
from swift.telemetry.log import Log

_RESERVED = (
    "X-Static-Large-Object is a reserved header. To create a static large object add query param "
    "multipart-manifest=put."
)


class Slo(Filter):
    """Stores manifests and serves them as the objects they stand for."""

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
        self._download = Download(self.forward, settings, log)
        self._hidden = None
        if settings.hidden_segments and policies is not None:
            self._hidden = HiddenSegments(self.forward, settings, self._upload, policies)
        self._removal = Removal(self.forward, settings, hasher, log)

    def handle(self, request: Request) -> Response:
        """Answer what is about a manifest."""
        entity = request.entity
        if entity is None or is_true(request.env.get(environkeys.SLO_OVERRIDE)):
            return self.forward(request)
        if entity.path.obj is None:
            if self._hidden is not None and request.method == "DELETE" and entity.path.container is not None:
                return self._hidden.delete_container(request, entity.path)
            response = self.forward(request)
            if request.method == "GET" and entity.path.container is not None:
                move_etag_parameters_to_rows(response, ("slo_etag",), _shown)
            return response
        if self._hidden is not None:
            answer = self._hidden.answer(request, entity, lambda again: self._object(again, entity))
            if answer is not None:
                return answer
        return self._object(request, entity)

    def _object(self, request: Request, entity: Entity) -> Response:
        wanted = request.params.get("multipart-manifest")
        if request.method in ("GET", "HEAD"):
            if wanted == "get":
                return self._download.manifest(request, entity.version, entity.path)
            return self._download.whole(request, entity.version, entity.path)
        if request.method == "PUT" and wanted == "put":
            return self._upload.put(request, entity.version, entity.path)
        if request.method == "DELETE" and wanted == "delete":
            return self._removal.delete(request, entity.version, entity.path)
        if request.method in ("PUT", "POST") and "x-static-large-object" in request.headers:
            raise HTTPError(400, _RESERVED)
        return self.forward(request)


def _shown(parameters: Mapping[str, str]) -> dict[str, str]:
    return {"slo_etag": f'"{parameters["slo_etag"]}"'}


def _make(app: App, settings: SloSettings, services: Services) -> Slo:
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
    _make,
    position=230,
    default=True,
    small_cluster={
        # As many parts as S3 has, with the longest names.
        "max_manifest_segments": "10000",
        "max_manifest_size": "33554432",
    },
    left_of={"encryption": "it would read and write what is encrypted"},
)
