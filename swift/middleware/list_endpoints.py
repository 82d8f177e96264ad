"""Locations of accounts, containers and objects on storage nodes (spec: middleware.md §15).

Returns the URLs of the primary nodes in the storage network, for software that runs beside the data.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from swift.base.entity import BadPath, Entity, EntityPath, NotUTF8, quote_path
from swift.base.hashing import PathHasher
from swift.cluster.rings import Rings
from swift.compose import Services
from swift.config.schema import Settings, option
from swift.gateway.info import container_info
from swift.http import fields
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.policy.policy import Policies

_API_VERSIONS = {"v1": 1, "v1.0": 1, "v2": 2, "v2.0": 2}


@dataclass(frozen=True)
class ListEndpointsSettings(Settings):
    """``[filter:list-endpoints]``."""

    list_endpoints_path: str = option("/endpoints/", "Path below which the locations of entities are listed.")


class ListEndpoints(Filter):
    """Serves the locations below its path."""

    def __init__(
        self, app: App, settings: ListEndpointsSettings, rings: Rings, hasher: PathHasher, policies: Policies
    ):
        super().__init__(app)
        path = settings.list_endpoints_path.strip("/")
        self._path_prefix = f"/{path}/" if path else "/"
        self._rings = rings
        self._hasher = hasher
        self._policies = policies

    def handle(self, request: Request) -> Response:
        """Return the locations of the account, container or object in the path."""
        path = request.lossy_path
        if not path.startswith(self._path_prefix):
            return self.forward(request)
        if request.method != "GET":
            return error_response(405, headers={"allow": "GET"})
        version, rest = _split_version(path[len(self._path_prefix) :])
        if version is None:
            return error_response(400, f"Unsupported version {rest!r}")
        if not rest or rest.startswith("/"):
            return error_response(400, "No account specified")
        entity = _parse_path(rest)
        return error_response(400) if entity is None else self._list_locations(request, version, entity)

    def _list_locations(self, request: Request, version: int, path: EntityPath) -> Response:
        headers: dict[str, str] = {}
        if path.obj is not None:
            info = container_info(request, self.forward, path.account, str(path.container))
            policy = self._policies.get(info.policy_index)
            if policy is None:
                return error_response(503)
            view = self._rings.object(policy).view()
            headers[_POLICY_INDEX_HEADER] = str(policy.index)
        else:
            view = (self._rings.account if path.container is None else self._rings.container).view()
        part = view.partition_of(self._hasher.digest(*path))
        urls = [
            f"http://{_format_host(node.ip)}:{node.port}/{node.device}/{part}{path.quoted}"
            for node in view.primaries(part)
        ]
        document: object = {"endpoints": urls, "headers": headers} if version == 2 else urls
        return Response(200, {"content-type": "application/json"}, json.dumps(document).encode())


_POLICY_INDEX_HEADER = "-".join(part.title() for part in fields.BACKEND_STORAGE_POLICY_INDEX.split("-"))


def _split_version(rest: str) -> tuple[int | None, str]:
    """Return version and path, version 1 by default; None and the first segment for an unknown version."""
    segment, _, path = rest.partition("/")
    if segment in _API_VERSIONS:
        return _API_VERSIONS[segment], path
    if segment.startswith("v") and segment[1:].replace(".", "", 1).isdigit():
        return None, segment
    return 1, rest


def _parse_path(text: str) -> EntityPath | None:
    try:
        return Entity.parse(quote_path(f"/v1/{text}")).path
    except (BadPath, NotUTF8):
        return None


def _format_host(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


def _make_filter(app: App, settings: ListEndpointsSettings, services: Services) -> ListEndpoints:
    """Return the filter of a configuration section; raises ``ConfigError``."""
    cluster = services.cluster
    rings = Rings(services.swift_dir, cluster.policies, report=services.telemetry().log.error)
    return ListEndpoints(app, settings, rings, cluster.config.hasher, cluster.policies)


FILTER = FilterDeclaration(
    "list_endpoints", ListEndpointsSettings, _make_filter, position=35, section="list-endpoints"
)
