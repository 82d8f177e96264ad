"""Accounts at the proxy (spec: public-api.md §5, proxy.md §9)."""

from __future__ import annotations

from swift.base.entity import EntityPath
from swift.gateway.info import account_key, account_record, cache_info, delete_cached_info
from swift.http import environkeys, fields
from swift.http.headers import with_prefix
from swift.http.request import Request
from swift.http.response import HTML, Response, error_response
from swift.http.validate import check_metadata, check_names
from swift.proxy.backend import backend_headers
from swift.proxy.controller import Change, Controller, metadata_headers
from swift.proxy.listing.plan import listing_query

JSON = "application/json; charset=utf-8"


class AccountController(Controller):
    """GET, HEAD, PUT, POST and DELETE of accounts."""

    kind = "account"

    def handle_read(self, request: Request, path: EntityPath) -> Response:
        """Handle GET or HEAD; an account not yet on disk looks empty where accounts are created on demand."""
        check_names(path, self.context.limits, new=True)
        view, part = self.locate(path)
        response = self.read(request, path, view, part, listing_query(request, self.kind))
        if response.status == 404:
            if response.headers.get("x-account-status", "").lower() == "deleted":
                response = Response(410, {"x-account-status": "Deleted", "content-type": HTML})
            elif self.context.settings.account_autocreate:
                response = self._empty_account(request)
        settings = self.context.settings
        record = account_record(response.status, response.headers, self.context.policies)
        cache_info(request, account_key(path.account), record, settings.recheck_account_existence)
        if not request.env.get(environkeys.OWNER):
            for name in settings.swift_owner_headers:
                response.headers.pop(name, None)
        return response

    def _empty_account(self, request: Request) -> Response:
        now = request.timestamp.normal
        headers = {
            "x-account-container-count": "0",
            "x-account-object-count": "0",
            "x-account-bytes-used": "0",
            "x-timestamp": now,
            "x-put-timestamp": now,
            fields.BACKEND_FAKE_ACCOUNT_LISTING: "yes",
            "content-type": JSON,
        }
        return Response(200, headers, b"[]" if request.method == "GET" else b"")

    def handle_put(self, request: Request, path: EntityPath) -> Response:
        """Create an account or merge metadata into it; operators only."""
        return self._write_metadata(request, path, "PUT")

    def handle_post(self, request: Request, path: EntityPath) -> Response:
        """Merge metadata."""
        response = self._write_metadata(request, path, "POST")
        if response.status == 404 and self.context.settings.account_autocreate:
            if response.headers.get("x-account-status", "").lower() == "deleted":
                # It cannot be created again until the reaper has removed it.
                return response
            if not self.autocreate(request, path.account):
                return error_response(503)
            response = self._write_metadata(request, path, "POST")
        return response

    def _write_metadata(self, request: Request, path: EntityPath, method: str) -> Response:
        check_names(path, self.context.limits, new=True)
        check_metadata(request.headers, "account", self.context.limits)
        headers = backend_headers(self.context, request, transfer=False)
        headers.update(metadata_headers(request.headers, "account", frozenset()))
        return self.write_everywhere(request, path, method, headers, account_key(path.account))

    def handle_delete(self, request: Request, path: EntityPath) -> Response:
        """Mark an account deleted; the reaper does the rest."""
        if request.query:
            return error_response(400)
        headers = backend_headers(self.context, request, transfer=False)
        return self.write_everywhere(request, path, "DELETE", headers, account_key(path.account))

    def autocreate(self, request: Request, account: str) -> bool:
        """Create an account for a request that needs it; return True if a quorum has it now."""
        path = EntityPath(account)
        view, part = self.locate(path)
        headers = {
            "x-timestamp": request.timestamp.internal,
            "x-trans-id": request.env.get(environkeys.TRANS_ID, "-"),
            "user-agent": self.context.agent,
            "x-openstack-request-id": request.env.get(environkeys.TRANS_ID, "-"),
            # System metadata that a filter sets on a new account.
            **with_prefix(request.headers, fields.ACCOUNT_SYSMETA),
        }
        attempts = [headers] * len(view.primaries(part))
        response = self.write(request, Change("PUT", path, view, part, attempts))
        delete_cached_info(request, account_key(account))
        if response.is_success:
            return True
        self.context.telemetry.log.warning(
            f"Could not autocreate account {path.quoted}", txid=headers["x-trans-id"]
        )
        return False
