"""Authentication of container sync requests from other clusters by realm keys (spec: middleware.md §14)."""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass
from urllib.parse import quote

from swift.base.entity import normalize_path_quoting
from swift.cluster.syncrealms import Realms, SyncToError, check_full_url
from swift.compose import Services
from swift.config.schema import Settings, option
from swift.gateway.info import container_info
from swift.http import environkeys, fields
from swift.http.request import Request
from swift.http.response import TEXT, Response, error_response
from swift.middleware.filter import App, Filter, FilterDeclaration

_AUTH_HEADER = "x-container-sync-auth"
_FULL_URL_ERROR = (
    "Full URLs are not allowed for X-Container-Sync-To values. Only realm values of the format "
    "//realm/cluster/account/container are allowed.\n"
)
_INVALID_AUTH_ERROR = "X-Container-Sync-Auth header not valid; contact cluster operator for support."


@dataclass(frozen=True)
class ContainerSyncFilterSettings(Settings):
    """``[filter:container_sync]``."""

    allow_full_urls: bool = option(True, "Let containers be copied to any URL, not only to realms.")
    current: str = option("", "This cluster as //REALM/CLUSTER, for /info.")


class ContainerSyncFilter(Filter):
    """Authenticates container sync requests and validates sync targets."""

    def __init__(self, app: App, settings: ContainerSyncFilterSettings, realms: Realms):
        super().__init__(app)
        self._allow_full_urls = settings.allow_full_urls
        self._realms = realms

    def handle(self, request: Request) -> Response:
        """Validate a container's sync target; authenticate requests of container sync."""
        headers = request.headers
        entity = request.entity
        if entity is None:
            return self.forward(request)
        if entity.path.kind == "container" and request.method in ("PUT", "POST"):
            problem = self._sync_to_error(headers.get("x-container-sync-to", "").strip())
            if problem:
                return error_response(400, problem)
        auth = headers.get(_AUTH_HEADER)
        if not auth or entity.path.container is None:
            return self.forward(request)
        if fields.BACKEND_INBOUND_X_TIMESTAMP in headers:
            headers["x-timestamp"] = headers[fields.BACKEND_INBOUND_X_TIMESTAMP]
        auth_result = self._authenticate(request, auth, entity.path.account, entity.path.container)
        request.env.setdefault(environkeys.LOG_INFO, []).append(f"cs:{auth_result}")
        if auth_result != "valid":
            realm = quote(entity.path.account, safe="")
            challenge = {"www-authenticate": f'SwiftContainerSync realm="{realm}"'}
            return error_response(401, _INVALID_AUTH_ERROR, challenge, content_type=TEXT)
        request.env[environkeys.AUTHORIZE_OVERRIDE] = True
        request.env[environkeys.SLO_OVERRIDE] = True
        request.env[environkeys.SYMLINK_OVERRIDE] = True
        return self.forward(request)

    def _sync_to_error(self, target: str) -> str:
        """Return the reason to refuse a sync target, "" for a valid one; container servers check its host."""
        if not target or target.startswith("//"):
            return ""
        if not self._allow_full_urls:
            return _FULL_URL_ERROR
        try:
            if target.rstrip("/"):
                check_full_url(target)
        except SyncToError as error:
            return str(error)
        return ""

    def _authenticate(self, request: Request, auth: str, account: str, container: str) -> str:
        arguments = auth.split()
        if len(arguments) != 3:
            return "not-3-args"
        name, nonce, signature = arguments
        realm = self._realms.get(name)
        keys = [key for key in (realm.key, realm.key2) if key] if realm is not None else []
        if not keys:
            return "no-local-realm-key"
        user_key = container_info(request, self.forward, account, container).sync_key
        if not user_key:
            return "no-local-user-key"
        stamp = request.headers.get("x-timestamp", "")
        # The sender may quote the path differently.
        texts = [
            "\n".join([request.method, path, stamp, nonce]).encode("latin-1", "replace")
            + b"\n"
            + user_key.encode("utf-8", "surrogateescape")
            for path in {request.raw_path, normalize_path_quoting(request.raw_path)}
        ]
        expected = [hmac.new(key.encode(), text, "sha1").hexdigest() for key in keys for text in texts]
        matches = [hmac.compare_digest(value.encode(), _signature_bytes(signature)) for value in expected]
        return "valid" if any(matches) else "invalid-sig"


def _signature_bytes(text: str) -> bytes:
    return text.lower().encode("latin-1", "replace")


def _make_filter(app: App, settings: ContainerSyncFilterSettings, services: Services) -> ContainerSyncFilter:
    """Return the filter of a configuration section."""
    path = os.path.join(services.swift_dir, "container-sync-realms.conf")
    realms = Realms.of_file(path)
    current = tuple(settings.current.upper().strip("/").split("/"))
    realm_info: dict[str, object] = {}
    for name in realms.names():
        realm = realms.get(name)
        clusters = realm.clusters if realm is not None else {}
        realm_info[name] = {
            "clusters": {c: {"current": True} if (name, c) == current else {} for c in clusters}
        }
    services.info.register("container_sync", {"realms": realm_info})
    return ContainerSyncFilter(app, settings, realms)


FILTER = FilterDeclaration(
    "container_sync",
    ContainerSyncFilterSettings,
    _make_filter,
    position=80,
    default=True,
    left_of={
        "tempauth": "container_sync authorizes requests of other clusters",
        "swiftauth": "container_sync authorizes requests of other clusters",
        "keystoneauth": "container_sync authorizes requests of other clusters",
    },
)
