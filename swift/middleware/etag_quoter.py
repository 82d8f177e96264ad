"""ETags in quotes, as RFC 9110 wants them, where owners ask for it (spec: middleware.md §15)."""

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
_STORED = {"account": fields.SYSMETA_ACCOUNT_QUOTED_ETAGS, "container": fields.SYSMETA_CONTAINER_QUOTED_ETAGS}


@dataclass(frozen=True)
class EtagQuoterSettings(Settings):
    """``[filter:etag-quoter]``."""

    enable_by_default: bool = option(
        False, "Quote ETags unless the account or container has a setting of its own."
    )


class EtagQuoter(Filter):
    """Keeps the wish with the account or container, and quotes the ETags of objects."""

    def __init__(self, app: App, settings: EtagQuoterSettings):
        super().__init__(app)
        self._default = settings.enable_by_default

    def handle(self, request: Request) -> Response:
        """Translate the wish's header; quote."""
        entity = request.entity
        if entity is None:
            return self.forward(request)
        if entity.path.obj is None:
            return self._translated(request, entity.path.kind)
        response = self.forward(request)
        etag = response.headers.get("etag")
        if etag and not _is_quoted(etag) and self._wanted(request, entity.path):
            response.headers["etag"] = f'"{etag}"'
        return response

    def _translated(self, request: Request, kind: str) -> Response:
        shown, stored = f"x-{kind}-rfc-compliant-etags", _STORED[kind]
        headers = request.headers
        if request.method in ("PUT", "POST"):
            if shown in headers:
                wish = headers.pop(shown)
                headers[stored] = str(is_true(wish)) if wish.strip() else ""
            if headers.get(f"x-remove-{shown[2:]}"):
                headers[stored] = ""
        response = self.forward(request)
        if stored in response.headers:
            response.headers[shown] = str(is_true(response.headers[stored]))
        return response

    def _wanted(self, request: Request, path: EntityPath) -> bool:
        container = container_info(request, self.forward, path.account, str(path.container))
        wish = container.sysmeta.get(_SYSMETA)
        if not wish:
            wish = account_info(request, self.forward, path.account).sysmeta.get(_SYSMETA)
        return is_true(wish) if wish else self._default


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
