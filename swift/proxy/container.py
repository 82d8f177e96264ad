"""Containers at the proxy (spec: public-api.md §6, proxy.md §9)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from swift.base.entity import EntityPath
from swift.gateway.info import (
    AccountInfo,
    account_info,
    account_key,
    container_info,
    container_key,
    delete_cached_info,
)
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap, wire_value
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.http.validate import check_metadata, check_names
from swift.proxy.account import AccountController
from swift.proxy.backend import backend_headers, hosts_and_devices
from swift.proxy.context import ProxyContext
from swift.proxy.controller import Change, Controller, authorize, metadata_headers
from swift.proxy.listing.response import ContainerRead
from swift.proxy.shards import listing_key
from swift.ring.device import Node

PASS_THROUGH = frozenset(
    (
        "x-container-read",
        "x-container-write",
        "x-container-sync-key",
        "x-container-sync-to",
        "x-versions-location",
    )
)


class ContainerController(Controller):
    """GET, HEAD, PUT, POST, DELETE and UPDATE of containers."""

    kind = "container"

    def __init__(
        self,
        context: ProxyContext,
        accounts: AccountController,
        forward: Callable[[Request], Response],
    ):
        super().__init__(context)
        self._accounts = accounts
        self._forward = forward

    def _account_info(self, request: Request, account: str) -> AccountInfo:
        skip_pct = self.context.settings.account_existence_skip_cache_pct
        info = account_info(request, self._forward, account, skip_pct=skip_pct)
        if info.status >= 500:
            # An account that cannot be reached need not be created.
            raise HTTPError(503)
        return info

    def _is_internal(self, account: str) -> bool:
        return account.startswith(self.context.limits.auto_create_account_prefix)

    # reading

    def handle_read(self, request: Request, path: EntityPath) -> Response:
        """Handle GET or HEAD; the read ACL of the response decides about delayed denials."""
        if not self._is_internal(path.account) and not self._account_info(request, path.account).exists:
            return authorize(request) or error_response(404)
        view, part = self.locate(path)
        reading = ContainerRead(self.context, self.backends, self._forward, request, path)
        return reading.respond(partial(self.read, request, path, view, part))

    # writing

    def handle_put(self, request: Request, path: EntityPath) -> Response:
        """Create a container or merge metadata into it."""
        self._validate(request, path)
        policy_headers = self._policy_headers(request)
        check_names(path, self.context.limits, new=True)
        account = self._ensure_account(request, path)
        headers = self._metadata(request)
        headers.update(policy_headers)
        view, part = self.locate(path)
        attempts = self._account_update_attempts(headers, path, len(view.primaries(part)))
        self._check_container_limit(request, path, account)
        response = self.write(request, Change("PUT", path, view, part, attempts))
        delete_cached_info(request, container_key(path.account, str(path.container)))
        delete_cached_info(request, listing_key(path))
        if response.status == 201:
            # The cached account may say that it does not exist yet, or count one container less.
            delete_cached_info(request, account_key(path.account))
        return response

    def _ensure_account(self, request: Request, path: EntityPath) -> AccountInfo:
        account = self._account_info(request, path.account)
        settings = self.context.settings
        must_create = not account.exists or not account.really_exists
        if must_create and not self._is_internal(path.account):
            if not settings.account_autocreate:
                raise HTTPError(404)
            if account.status == 400:
                # The account's name is refused, so it cannot be created.
                raise HTTPError(404)
            if account.status == 410 or not self._accounts.autocreate(request, path.account):
                raise HTTPError(503)
            account = self._account_info(request, path.account)
        return account

    def _check_container_limit(self, request: Request, path: EntityPath, account: AccountInfo) -> None:
        settings = self.context.settings
        most = settings.max_containers_per_account
        if not most or path.account in settings.max_containers_whitelist or account.container_count < most:
            return
        known = container_info(request, self._forward, path.account, str(path.container))
        if not known.exists:
            raise HTTPError(403, f"Reached container limit of {most}")

    def handle_post(self, request: Request, path: EntityPath) -> Response:
        """Merge metadata."""
        self._validate(request, path)
        headers = self._metadata(request)
        if not self._is_internal(path.account) and not self._account_info(request, path.account).exists:
            return error_response(404)
        key = container_key(path.account, str(path.container))
        return self.write_everywhere(request, path, "POST", headers, key)

    def handle_delete(self, request: Request, path: EntityPath) -> Response:
        """Delete an empty container."""
        if not self._is_internal(path.account) and not self._account_info(request, path.account).exists:
            return error_response(404)
        view, part = self.locate(path)
        key = container_key(path.account, str(path.container))
        headers = backend_headers(self.context, request, transfer=False)
        attempts = self._account_update_attempts(headers, path, len(view.primaries(part)))
        delete_cached_info(request, key)
        response = self.write(request, Change("DELETE", path, view, part, attempts))
        delete_cached_info(request, key)
        delete_cached_info(request, listing_key(path))
        delete_cached_info(request, account_key(path.account))
        # 202 means that no node had the container.
        return error_response(404) if response.status == 202 else response

    def handle_update(self, request: Request, path: EntityPath) -> Response:
        """Handle the internal UPDATE: many object rows in one request."""
        headers = backend_headers(self.context, request, transfer=False)
        view, part = self.locate(path)
        attempts = [headers] * len(view.primaries(part))
        return self.write(request, Change("UPDATE", path, view, part, attempts, request.body.read()))

    def _validate(self, request: Request, path: EntityPath) -> None:
        """Check owner headers, ACL syntax and metadata of PUT and POST; raise ``HTTPError`` 400."""
        headers = request.headers
        if not request.env.get(environkeys.OWNER):
            for name in self.context.settings.swift_owner_headers:
                headers.pop(name, None)
        normalize_acl = request.env.get(environkeys.CLEAN_ACL)
        for name in ("x-container-read", "x-container-write"):
            if headers.get(name) and normalize_acl is not None:
                try:
                    headers[name] = normalize_acl(name, headers[name])
                except ValueError as error:
                    raise HTTPError(400, str(error))
        if request.env.get(environkeys.RESELLER_REQUEST) and "x-container-sharding" in headers:
            flag = headers["x-container-sharding"].strip().lower() in ("true", "1", "yes", "on", "t", "y")
            headers[fields.SYSMETA_SHARDING] = str(flag)
        check_metadata(headers, "container", self.context.limits)

    def _metadata(self, request: Request) -> HeaderMap:
        headers = backend_headers(self.context, request, transfer=False)
        headers.update(metadata_headers(request.headers, "container", PASS_THROUGH))
        return headers

    def _policy_headers(self, request: Request) -> HeaderMap:
        """Return the headers of the chosen or the default policy; 400 for an unknown or deprecated one."""
        name = request.headers.get("x-storage-policy", "").strip()
        if not name:
            return {fields.BACKEND_STORAGE_POLICY_DEFAULT: str(self.context.policies.default.index)}
        policy = self.context.policies.named(name)
        if policy is None:
            raise HTTPError(400, f"Invalid X-Storage-Policy '{wire_value(name)}'", content_type=TEXT)
        if policy.is_deprecated:
            raise HTTPError(400, f"Storage Policy '{policy.name}' is deprecated")
        return {fields.BACKEND_STORAGE_POLICY_INDEX: str(policy.index)}

    def _account_update_attempts(self, headers: HeaderMap, path: EntityPath, count: int) -> list[HeaderMap]:
        """Return one set of headers per container node; each names account nodes to update."""
        view = self.context.rings.account.view()
        part = view.partition_of(self.context.hasher.digest(path.account))
        shares: list[list[Node]] = [[] for _ in range(count)]
        for i, node in enumerate(view.primaries(part)):
            shares[i % count].append(node)
        attempts = []
        for share in shares:
            attempt = dict(headers)
            if share:
                attempt[fields.ACCOUNT_PARTITION] = str(part)
                attempt[fields.ACCOUNT_HOST], attempt[fields.ACCOUNT_DEVICE] = hosts_and_devices(share)
            attempts.append(attempt)
        return attempts
