"""Containers that take only so many bytes or objects (spec: middleware.md §12).

What a container has is what is known of it (``gateway.info``), some seconds old: a quota bounds what grows,
it is not exact.
"""

from __future__ import annotations

from swift.config.schema import Settings
from swift.gateway.info import ContainerInfo, container_info
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.filter import Filter, FilterDeclaration
from swift.middleware.quota import exceeds, is_quota, quota_of, too_large
from swift.middleware.versioned_writes.names import name_of_stored

_WORDS = ("bytes", "count")


class ContainerQuotas(Filter):
    """Checks quotas when they are set, and uploads against them."""

    def handle(self, request: Request) -> Response:
        """Refuse what is no quota, and what does not fit into one."""
        entity = request.entity
        if entity is None or request.method not in ("PUT", "POST"):
            return self.forward(request)
        account, container, obj = entity.path
        if container is None:
            return self.forward(request)
        if obj is None:
            for word in _WORDS:
                if not is_quota(request.headers.get(f"x-container-meta-quota-{word}", "")):
                    return error_response(400, f"Invalid {word} quota.")
            return self.forward(request)
        if request.method == "PUT":
            info = container_info(request, self.forward, account, container)
            size = request.body.length or 0
            if info.exists and (
                exceeds(quota_of(info.meta.get("quota-bytes")), self._used(request, account, info), size)
                or exceeds(quota_of(info.meta.get("quota-count")), info.object_count, 1)
            ):
                return too_large(request, info, "Upload exceeds quota.")
        return self.forward(request)

    def _used(self, request: Request, account: str, info: ContainerInfo) -> int:
        """Bytes in a container, all versions of its objects counted, and all their hidden parts."""
        if "quota-bytes" not in info.meta:
            return info.bytes
        stored = (info.sysmeta.get(name) for name in ("versions-container", "segments-container"))
        hidden = (name_of_stored(name) for name in stored if name)
        return info.bytes + sum(container_info(request, self.forward, account, name).bytes for name in hidden)


FILTER = FilterDeclaration(
    "container_quotas",
    Settings,
    lambda app, _settings, _services: ContainerQuotas(app),
    position=210,
    default=True,
    section="container-quotas",
    info=lambda _settings: {},
    right_of={
        "tempauth": "the user would not be authorized yet",
        "keystoneauth": "the user would not be authorized yet",
    },
)
