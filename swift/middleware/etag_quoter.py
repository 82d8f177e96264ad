"""Quotes ETags as RFC 9110 requires, per account or container (spec: middleware.md §15)."""

from __future__ import annotations

from dataclasses import dataclass

from swift.base.entity import EntityPath
from swift.base.truth import is_true
from swift.config.schema import Settings, option
from swift.gateway.info import account_info, container_info
from swift.http import fields
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.filter import App, Filter, FilterDeclaration

_SYSMETA = "rfc-compliant-etags"
_SYSMETA_HEADERS = {
    "account": fields.SYSMETA_ACCOUNT_QUOTED_ETAGS,
    "container": fields.SYSMETA_CONTAINER_QUOTED_ETAGS,
}


@dataclass(frozen=True)
class EtagQuoterSettings(Settings):
    """``[filter:etag-quoter]``."""

    enable_by_default: bool = option(
        False, "Quote ETags unless the account or container has a setting of its own."
    )


class EtagQuoter(Filter):
    """Stores the setting of accounts and containers, and quotes the ETags of objects."""

    def __init__(self, app: App, settings: EtagQuoterSettings):
        super().__init__(app)
        self._quote_by_default = settings.enable_by_default

    def handle(self, request: Request) -> Response:
        """Store or return the setting; quote the ETag of an object."""
        entity = request.entity
        if entity is None:
            return self.forward(request)
        if entity.path.obj is None:
            return self._translate_setting(request, entity.path.kind)
        response = self.forward(request)
        etag = response.headers.get("etag")
        if etag and not _is_quoted(etag) and self._is_quoting_enabled(request, entity.path):
            response.headers["etag"] = f'"{etag}"'
        return response

    def _translate_setting(self, request: Request, kind: str) -> Response:
        client_header, sysmeta_header = f"x-{kind}-rfc-compliant-etags", _SYSMETA_HEADERS[kind]
        headers = request.headers
        if request.method in ("PUT", "POST"):
            if client_header in headers:
                value = headers.pop(client_header)
                headers[sysmeta_header] = str(is_true(value)) if value.strip() else ""
            if headers.get(f"x-remove-{client_header[2:]}"):
                headers[sysmeta_header] = ""
        response = self.forward(request)
        if sysmeta_header in response.headers:
            response.headers[client_header] = str(is_true(response.headers[sysmeta_header]))
        return response

    def _is_quoting_enabled(self, request: Request, path: EntityPath) -> bool:
        container = container_info(request, self.forward, path.account, str(path.container))
        setting = container.sysmeta.get(_SYSMETA)
        if not setting:
            setting = account_info(request, self.forward, path.account).sysmeta.get(_SYSMETA)
        return is_true(setting) if setting else self._quote_by_default


def _is_quoted(etag: str) -> bool:
    return etag.startswith(('"', 'W/"')) and etag.endswith('"')


FILTER = FilterDeclaration(
    "etag_quoter",
    EtagQuoterSettings,
    lambda app, settings, _services: EtagQuoter(app, settings),
    position=65,
    section="etag-quoter",
    info=lambda settings: {"enable_by_default": settings.enable_by_default},
)
