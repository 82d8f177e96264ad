"""Read-only mode of a cluster or of single accounts (spec: middleware.md §15)."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from swift.base.truth import is_true
from swift.compose import Services
from swift.config.schema import Settings, option
from swift.gateway.info import account_info
from swift.http.headers import utf8_value
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.filter import App, Filter, FilterDeclaration

#: System metadata of an account that overrides the filter's default.
_ACCOUNT_SYSMETA = "read-only"


@dataclass(frozen=True)
class ReadOnlySettings(Settings):
    """``[filter:read_only]``."""

    read_only: bool = option(False, "Reject writes to accounts without a setting of their own.")
    allow_deletes: bool = option(False, "Let DELETE pass all the same.")


class ReadOnly(Filter):
    """Refuses writes to read-only accounts."""

    def __init__(self, app: App, settings: ReadOnlySettings):
        super().__init__(app)
        self._read_only_by_default = settings.read_only
        writes = {"COPY", "POST", "PUT"}
        self._write_methods = frozenset(writes if settings.allow_deletes else writes | {"DELETE"})

    def handle(self, request: Request) -> Response:
        """Return 405 for a write to a read-only account."""
        entity = request.entity
        if request.method not in self._write_methods or entity is None:
            return self.forward(request)
        account = entity.path.account
        if request.method == "COPY" and request.headers.get("destination-account"):
            # The source is only read.
            account = unquote(utf8_value(request.headers["destination-account"]))
        if self._is_read_only(request, account):
            return error_response(405, "Writes are disabled for this account.")
        return self.forward(request)

    def _is_read_only(self, request: Request, account: str) -> bool:
        account_setting = account_info(request, self.forward, account).sysmeta.get(_ACCOUNT_SYSMETA)
        return is_true(account_setting) if account_setting else self._read_only_by_default


def _make_filter(app: App, settings: ReadOnlySettings, services: Services) -> ReadOnly:
    """Return the filter of a configuration section."""
    if settings.read_only:
        services.info.register("read_only")
    return ReadOnly(app, settings)


FILTER = FilterDeclaration("read_only", ReadOnlySettings, _make_filter, position=195)
