"""Containers at the proxy (spec: public-api.md §6, proxy.md §9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from urllib.parse import quote

from swift.base.entity import EntityPath
from swift.gateway.info import (
    AccountInfo,
    account_info,
    account_key,
    cache_info,
    cached_container,
    container_headers,
    container_info,
    container_key,
    container_record,
    delete_cached_info,
)
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap, wire_value
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.http.validate import check_metadata, check_names
from swift.proxy.account import AccountController
from swift.proxy.backend import backend_headers
from swift.proxy.context import ProxyContext
from swift.proxy.controller import Change, Controller, authorize, metadata_headers
from swift.proxy.query import listing_query
from swift.proxy.shardbounds import listing_key
from swift.proxy.shards import (
    OBJECT,
    cached_listing_response,
    cached_shards,
    is_split,
    listing_response,
    prepare_listing,
    sharded_listing_response,
)
from swift.proxy.stronglisting import (
    META_KEY,
    UNSHARDED,
    ReplicaRowsUnsupported,
    SplitContainer,
    StrongListing,
    StrongPages,
    is_wanted,
)
from swift.ring.device import Node
from swift.ring.view import RingView

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

    def _locate(self, path: EntityPath):  # type: ignore[no-untyped-def]
        view = self.context.rings.container.view()
        return view, view.partition_of(self.context.hasher.digest(path.account, path.container))

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
            denied = authorize(request)
            return denied or error_response(404)
        remembered = self._cached_listing(request, path)
        if remembered is not None:
            return remembered
        view, part = self._locate(path)
        query = prepare_listing(request, listing_query(request, self.kind))
        response = self.read(request, path, view, part, query)
        settings = self.context.settings
        record = container_record(response.status, response.headers)
        key = container_key(path.account, str(path.container))
        cache_info(request, key, record, settings.recheck_container_existence)
        request.acl = response.headers.get("x-container-read")
        denied = authorize(request)
        if denied is not None:
            response.discard()
            return denied
        if self._needs_strong_listing(request, path, response):
            response = self._strong_listing(request, path, view, part, response)
        elif is_split(request, response):
            response = self._sharded_listing(request, path, view, part, response)
        self._finish_headers(request, response)
        return response

    def _needs_strong_listing(self, request: Request, path: EntityPath, response: Response) -> bool:
        """Return True if a listing has to show every acknowledged write."""
        headers = response.headers
        return (
            self._lists_strongly(headers)
            and request.method == "GET"
            and response.is_success
            and (is_split(request, response) or headers.get(fields.BACKEND_RECORD_TYPE, OBJECT) == OBJECT)
            and not self._is_internal(path.account)
        )

    def _lists_strongly(self, headers: HeaderMap) -> bool:
        return is_wanted(self.context.settings.strong_listing, headers.get(f"x-container-meta-{META_KEY}"))

    def _strong_listing(
        self, request: Request, path: EntityPath, view: RingView, part: int, found: Response
    ) -> Response:
        """Return a strong listing, or an eventual one where peer servers do not support it."""
        listing = StrongListing(request, self._forward, path, self.context.limits.container_listing_limit)
        pages = StrongPages(self.context, self.backends, request, path)
        policy = found.headers.get(fields.BACKEND_STORAGE_POLICY_INDEX, "0")
        try:
            if found.headers.get(fields.BACKEND_SHARDING_STATE, UNSHARDED) != UNSHARDED:
                raise SplitContainer
            rows = listing.rows(pages.page_of_replicas)
        except SplitContainer:
            try:
                rows = listing.rows(partial(pages.page_of_shards, policy))
            except ReplicaRowsUnsupported:
                return self._eventual_listing(request, path, view, part, found)
        found.discard()
        found.report_end(0, False)
        headers = {**found.headers, fields.BACKEND_RECORD_TYPE: OBJECT}
        headers.pop(fields.BACKEND_RECORD_SHARD_FORMAT, None)
        headers.pop(fields.BACKEND_OVERRIDE_NAME_FILTER, None)
        return listing_response(request, headers, rows)

    def _eventual_listing(
        self, request: Request, path: EntityPath, view: RingView, part: int, found: Response
    ) -> Response:
        """Return the listing of a container that is or was split, where some servers are the peer's."""
        if is_split(request, found):
            return self._sharded_listing(request, path, view, part, found)
        if found.headers.get(fields.BACKEND_SHARDING_STATE, UNSHARDED) != UNSHARDED:
            return found
        found.discard()
        found.report_end(0, False)
        root = self._find_split_root(request, path, view.primaries(part), part, found)
        return self._sharded_listing(request, path, view, part, root)

    def _find_split_root(
        self, request: Request, path: EntityPath, nodes: Sequence[Node], part: int, found: Response
    ) -> Response:
        """Return the response of a server that knows shards, because the first server did not."""
        query = prepare_listing(request, listing_query(request, self.kind))
        sent = backend_headers(self.context, request, transfer=True)
        for node in nodes:
            backend_request = self.backends.make_request(node, part, "GET", path, sent, query)
            response = self.backends.request(backend_request)
            if response is not None:
                names = (fields.BACKEND_RECORD_TYPE, fields.BACKEND_SHARDING_STATE)
                known = {name: response.headers[name] for name in names if name in response.headers}
                root = Response(response.status, {**found.headers, **known}, response.body)
                if is_split(request, root):
                    return root
        raise HTTPError(503)

    def _cached_listing(self, request: Request, path: EntityPath) -> Response | None:
        """Return a listing without a request to the root if caches know it and its shards."""
        settings, limit_max = self.context.settings, self.context.limits.container_listing_limit
        shards = cached_shards(
            request,
            path,
            limit_max,
            recheck_s=settings.recheck_listing_shard_ranges,
            skip_pct=settings.container_listing_shard_ranges_skip_cache_pct,
        )
        if shards is None:
            return None
        listing_query(request, self.kind)  # raises for invalid parameters
        headers = container_headers(cached_container(request, path.account, str(path.container)) or {})
        if not headers or self._lists_strongly(headers):
            return None
        request.acl = headers.get("x-container-read")
        denied = authorize(request)
        if denied is not None:
            return denied
        root = Response(200, {**headers, "accept-ranges": "bytes"})
        response = cached_listing_response(request, self._forward, path, limit_max, root, shards)
        if response is not None:
            self._finish_headers(request, response)
        return response

    def _sharded_listing(
        self, request: Request, path: EntityPath, view: RingView, part: int, root: Response
    ) -> Response:
        def request_again() -> Response:
            params = {**dict(request.params), "format": "json", "states": "listing"}
            query = "&".join(
                f"{quote(name.encode('latin-1'), safe='')}={quote(value.encode('latin-1'), safe='')}"
                for name, value in params.items()
            )
            return self.read(request, path, view, part, query)

        limit_max, recheck_s = (
            self.context.limits.container_listing_limit,
            self.context.settings.recheck_listing_shard_ranges,
        )
        return sharded_listing_response(
            request, self._forward, path, limit_max, root, request_again, recheck_s=recheck_s
        )

    def _finish_headers(self, request: Request, response: Response) -> None:
        headers = response.headers
        if not request.env.get(environkeys.OWNER):
            for name in self.context.settings.swift_owner_headers:
                headers.pop(name, None)
        policy = self.context.policies.of_header(headers.get(fields.BACKEND_STORAGE_POLICY_INDEX))
        if response.is_success and policy is not None:
            headers["x-storage-policy"] = policy.name
        is_known = fields.BACKEND_SHARDING_STATE in headers or response.status == 404
        if request.env.get(environkeys.RESELLER_REQUEST) and is_known:
            sharding = headers.get(fields.SYSMETA_SHARDING, "")
            headers["x-container-sharding"] = str(sharding.lower() == "true")

    # writing

    def handle_put(self, request: Request, path: EntityPath) -> Response:
        """Create a container or merge metadata into it."""
        self._validate(request, path)
        policy_headers = self._policy_headers(request)
        check_names(path, self.context.limits, new=True)
        account = self._ensure_account(request, path)
        headers = self._metadata(request)
        headers.update(policy_headers)
        view, part = self._locate(path)
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
        return self._write_to_primaries(request, path, "POST", self._metadata(request))

    def handle_delete(self, request: Request, path: EntityPath) -> Response:
        """Delete an empty container."""
        if not self._is_internal(path.account) and not self._account_info(request, path.account).exists:
            return error_response(404)
        view, part = self._locate(path)
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
        view, part = self._locate(path)
        attempts = [headers] * len(view.primaries(part))
        return self.write(request, Change("UPDATE", path, view, part, attempts, request.body.read()))

    def _write_to_primaries(
        self, request: Request, path: EntityPath, method: str, headers: HeaderMap
    ) -> Response:
        if not self._is_internal(path.account) and not self._account_info(request, path.account).exists:
            return error_response(404)
        view, part = self._locate(path)
        key = container_key(path.account, str(path.container))
        delete_cached_info(request, key)
        attempts = [headers] * len(view.primaries(part))
        response = self.write(request, Change(method, path, view, part, attempts))
        delete_cached_info(request, key)
        return response

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
        shares: list[list[tuple[str, str]]] = [[] for _ in range(count)]
        for i, node in enumerate(view.primaries(part)):
            address, _, device = node.key.rpartition("/")
            shares[i % count].append((address, device))
        attempts = []
        for share in shares:
            attempt = dict(headers)
            if share:
                attempt[fields.ACCOUNT_PARTITION] = str(part)
                attempt[fields.ACCOUNT_HOST] = ",".join(address for address, _ in share)
                attempt[fields.ACCOUNT_DEVICE] = ",".join(device for _, device in share)
            attempts.append(attempt)
        return attempts
