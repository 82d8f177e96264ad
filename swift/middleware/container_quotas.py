"""Quotas of containers: bytes or objects (spec: middleware.md §12).

The usage of a container comes from cached info (``gateway.info``) that may be some seconds old, so a quota is
not exact.
"""

from __future__ import annotations

from swift.config.schema import Settings
from swift.gateway.info import ContainerInfo, container_info
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.filter import AUTHORIZED_BEFORE, Filter, FilterDeclaration
from swift.middleware.quota import exceeds_quota, is_valid_quota, parse_quota, quota_exceeded_response
from swift.middleware.versioned_writes.names import unquote_container_name

_QUOTA_KINDS = ("bytes", "count")


class ContainerQuotas(Filter):
    """Validates new quotas and checks uploads against quotas."""

    def handle(self, request: Request) -> Response:
        """Refuse invalid quotas and uploads that exceed a quota."""
        entity = request.entity
        if entity is None or request.method not in ("PUT", "POST"):
            return self.forward(request)
        account, container, obj = entity.path
        if container is None:
            return self.forward(request)
        if obj is None:
            for quota_kind in _QUOTA_KINDS:
                if not is_valid_quota(request.headers.get(f"x-container-meta-quota-{quota_kind}", "")):
                    return error_response(400, f"Invalid {quota_kind} quota.")
            return self.forward(request)
        if request.method == "PUT":
            info = container_info(request, self.forward, account, container)
            size = request.body.length or 0
            if info.exists and (
                exceeds_quota(
                    parse_quota(info.meta.get("quota-bytes")), self._used_bytes(request, account, info), size
                )
                or exceeds_quota(parse_quota(info.meta.get("quota-count")), info.object_count, 1)
            ):
                return quota_exceeded_response(request, info, "Upload exceeds quota.")
        return self.forward(request)

    def _used_bytes(self, request: Request, account: str, info: ContainerInfo) -> int:
        """Return the bytes in a container, including all versions and hidden parts of its objects."""
        if "quota-bytes" not in info.meta:
            return info.bytes
        stored = (info.sysmeta.get(name) for name in ("versions-container", "segments-container"))
        hidden = (unquote_container_name(name) for name in stored if name)
        return info.bytes + sum(container_info(request, self.forward, account, name).bytes for name in hidden)


FILTER = FilterDeclaration(
    "container_quotas",
    Settings,
    lambda app, _settings, _services: ContainerQuotas(app),
    position=210,
    default=True,
    section="container-quotas",
    info=lambda _settings: {},
    right_of=AUTHORIZED_BEFORE,
)
