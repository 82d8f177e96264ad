"""The outermost filter: adds transaction ids and turns exceptions into 500 (spec: public-api.md §2)."""

from __future__ import annotations

from dataclasses import dataclass

from swift.base.txid import new_transaction_id
from swift.config.schema import Settings, option
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.telemetry.log import Log


@dataclass(frozen=True)
class CatchErrorsSettings(Settings):
    """``[filter:catch_errors]``."""

    trans_id_suffix: str = option("", "Appended to transaction ids, e.g. a cluster name.")


class CatchErrors(Filter):
    """Assigns a transaction id to every request and turns exceptions into a plain 500."""

    def __init__(self, app: App, settings: CatchErrorsSettings, log: Log):
        super().__init__(app)
        self._suffix = settings.trans_id_suffix
        self._log = log

    def handle(self, request: Request) -> Response:
        """Add the transaction id to request and response."""
        extra = request.headers.get("x-trans-id-extra")
        txid = new_transaction_id(self._suffix, extra)
        request.env[environkeys.TRANS_ID] = txid
        sent = request.headers.get("x-trans-id")
        if sent is not None:
            request.env.setdefault(environkeys.REPLACED_HEADERS, {})["x-trans-id"] = sent
        request.headers["x-trans-id"] = txid
        try:
            response = self.forward(request)
        except Exception as error:
            self._log.exception(f"Error: {request.method} {request.path_qs}", error, txid=txid)
            response = Response(500, {"content-type": "text/plain"}, b"An error occurred")
        response.headers["x-trans-id"] = txid
        response.headers["x-openstack-request-id"] = txid
        return response


FILTER = FilterDeclaration(
    "catch_errors",
    CatchErrorsSettings,
    lambda app, settings, services: CatchErrors(app, settings, services.telemetry().log),
    position=10,
    default=True,
    required_after=(),
)
