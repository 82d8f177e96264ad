"""The response to a GET or HEAD of a container: runs the plan and renders the merged rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.base.errors import InvalidValue
from swift.base.namespace import Namespace
from swift.gateway.info import (
    cache_info,
    cached_container,
    container_headers,
    container_key,
    container_record,
    delete_cached_info,
)
from swift.gateway.subrequest import Forward
from swift.http import environkeys, fields
from swift.http.body import BodyError
from swift.http.headers import HeaderMap
from swift.http.listing import as_json, as_text
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.proxy.backend import Backends, backend_headers
from swift.proxy.context import STRONG_KEY, ProxyContext
from swift.proxy.controller import authorize
from swift.proxy.listing.merge import all_rows, parse_rows
from swift.proxy.listing.plan import (
    AUTO,
    OBJECT,
    SHARD,
    Deny,
    Finding,
    ListingInfo,
    Root,
    Rows,
    Shards,
    ShardsFrom,
    Strong,
    decide,
    listing_query,
    listing_request,
    requested_listing,
    root_of,
)
from swift.proxy.listing.sources import Primaries, ShardRows, StrongRows, object_exists
from swift.proxy.shards import (
    cache_shards,
    cached_shards,
    forget_shards,
    in_listing_order,
    parse_namespaces,
)

#: Reads the root with a query and headers.
ReadRoot = Callable[[str, HeaderMap], Response]


class ContainerRead:
    """A GET or HEAD of a container whose account exists."""

    def __init__(
        self, context: ProxyContext, backends: Backends, forward: Forward, request: Request, path: EntityPath
    ):
        self._context = context
        self._backends = backends
        self._forward = forward
        self._request = request
        self._path = path
        is_internal = path.account.startswith(context.limits.auto_create_account_prefix)
        self._wanted = listing_request(request, is_internal=is_internal)
        self._query = listing_query(request, "container")
        self._info = ListingInfo()
        self._denial: Response | None = None
        #: The root's response, and its facts once it came from the root and not from caches.
        self._response = Response(200)
        self._root: Root | None = None
        self._shards: Sequence[Namespace] = ()

    def respond(self, read: ReadRoot) -> Response:
        """Return the response; raises ``HTTPError``."""
        self._look_up()
        while True:
            response: Response | None
            match decide(self._wanted, self._info, self._root):
                case Deny():
                    self._release()
                    if self._denial is None:
                        raise HTTPError(503)
                    return self._denial
                case Rows() if self._root is None:
                    self._read_root(read)
                    continue
                case Rows():
                    response = self._relay()
                case Shards(bounds):
                    response = self._list_shards(bounds, read)
                case Strong(is_split):
                    response = self._list_strongly(is_split)
            if response is not None:
                return self._finish(response)

    # --- what is known ------------------------------------------------------------------------------------

    def _look_up(self) -> None:
        """Take what caches know, if it is enough for a listing without a request to the root."""
        request, settings = self._request, self._context.settings
        record = cached_container(request, self._path.account, str(self._path.container))
        if not self._wanted.takes_shards or record is None or record.get("sharding_state") != "sharded":
            return
        shards = cached_shards(
            request,
            self._path,
            self._context.limits.container_listing_limit,
            recheck_s=settings.recheck_listing_shard_ranges,
            skip_pct=settings.container_listing_shard_ranges_skip_cache_pct,
        )
        if shards is not None and (headers := container_headers(record)):
            self._shards = shards
            self._response = Response(200, {**headers, "accept-ranges": "bytes"})
            self._learn(has_cached_shards=True)

    def _learn(self, *, has_cached_shards: bool = False) -> None:
        """Take the container's facts from the headers of ``_response``."""
        headers = self._response.headers
        self._request.acl = headers.get("x-container-read")
        self._denial = authorize(self._request)
        mark = headers.get(f"x-container-meta-{STRONG_KEY}")
        self._info = ListingInfo(
            has_cached_shards=has_cached_shards,
            is_denied=self._denial is not None,
            is_strong=self._context.lists_strongly(mark),
        )

    def _read_root(self, read: ReadRoot) -> None:
        """Request the root; it may respond with its shards."""
        if self._wanted.takes_shards:
            response = read(f"{self._query}&states=listing", self._shard_headers())
        else:
            response = read(self._query, {})
        self._response = response
        record = container_record(response.status, response.headers)
        key = container_key(self._path.account, str(self._path.container))
        cache_info(self._request, key, record, self._context.settings.recheck_container_existence)
        self._learn()
        self._root = root_of(response.status, response.headers)

    def _shard_headers(self) -> HeaderMap:
        headers = {
            fields.BACKEND_RECORD_TYPE: AUTO,
            fields.BACKEND_RECORD_SHARD_FORMAT: "namespace",
            fields.BACKEND_INCLUDE_DELETED: "false",
        }
        if self._request.env.get(environkeys.CACHE) is not None:
            # All shards, whatever part the client lists: they are cached for other requests.
            headers[fields.BACKEND_OVERRIDE_NAME_FILTER] = "sharded"
        return headers

    def _release(self) -> None:
        self._response.discard()
        self._response.report_end(0, False)

    # --- the kinds of the plan ----------------------------------------------------------------------------

    def _relay(self) -> Response:
        """Return the root's response, as text if it was requested again as JSON."""
        assert self._root is not None
        if not self._root.is_second:
            return self._response
        try:
            return self._render(parse_rows(self._response.read_body()))
        except (BodyError, InvalidValue):
            raise HTTPError(503)
        finally:
            self._response.discard()

    def _list_shards(self, bounds: ShardsFrom, read: ReadRoot) -> Response | None:
        """Return the listing of shards; None if more has become known, for ``decide``."""
        is_cached = bounds is ShardsFrom.CACHE
        if bounds is ShardsFrom.SECOND:
            self._response.discard()
            query = listing_query(self._request, "container", text=False)
            self._response = read(f"{query}&states=listing", self._shard_headers())
            self._root = root_of(self._response.status, self._response.headers, is_second=True)
            return None
        if bounds is ShardsFrom.PRIMARIES:
            self._find_split_primary()
        if not is_cached:
            self._parse_shards()
        wanted = requested_listing(self._request, self._context.limits.container_listing_limit)
        source = ShardRows(
            self._request,
            self._forward,
            self._path,
            wanted.params,
            in_listing_order(self._shards, reverse=wanted.params.reverse),
            policy_index=self._response.headers.get(fields.BACKEND_STORAGE_POLICY_INDEX, "0"),
            is_cached=is_cached,
        )
        rows = all_rows(source, wanted.marker, wanted.limit)
        if isinstance(rows, Finding):
            # Writers request the shards again too.
            forget_shards(self._request, self._path)
            delete_cached_info(self._request, container_key(self._path.account, str(self._path.container)))
            self._info = ListingInfo()
            return None
        counts: HeaderMap = {}
        if len(rows) < wanted.limit and wanted.is_whole:
            counts["x-container-object-count"] = str(len(rows))
            counts["x-container-bytes-used"] = str(sum(row.get("bytes", 0) for row in rows))
        return self._render(rows, counts)

    def _find_split_primary(self) -> None:
        """Request the primaries in turn until one responds with shards; raises ``HTTPError`` 503."""
        self._release()
        view = self._context.rings.container.view()
        part = view.partition_of(self._context.hasher.digest(self._path.account, self._path.container))
        sent = {**backend_headers(self._context, self._request, transfer=True), **self._shard_headers()}
        query = f"{listing_query(self._request, 'container', text=False)}&states=listing"
        for node in view.primaries(part):
            found = self._backends.request(
                self._backends.make_request(node, part, "GET", self._path, sent, query)
            )
            root = None if found is None else root_of(found.status, found.headers)
            if found is not None and root is not None and root.is_listing and root.record_type == SHARD:
                headers = {**self._response.headers, fields.BACKEND_SHARDING_STATE: root.state}
                self._response = Response(found.status, headers, found.body)
                return
        raise HTTPError(503)

    def _parse_shards(self) -> None:
        """Read the shards in ``_response``, and cache them if they are all; raises ``HTTPError`` 503."""
        try:
            body = self._response.read_body()
            self._shards = parse_namespaces(body) if body else []
        except (BodyError, InvalidValue):
            raise HTTPError(503)
        recheck_s = self._context.settings.recheck_listing_shard_ranges
        cache_shards(self._request, self._path, self._response.headers, self._shards, recheck_s=recheck_s)

    def _list_strongly(self, is_split: bool) -> Response | None:
        """Return a strong listing; None if more has become known, for ``decide``."""
        wanted = requested_listing(self._request, self._context.limits.container_listing_limit)
        policy_index = self._response.headers.get(fields.BACKEND_STORAGE_POLICY_INDEX, "0")
        source = StrongRows(
            Primaries(self._context, self._backends, self._request, policy_index=policy_index),
            f"{self._path.account}/{self._path.container}",
            wanted.params,
            partial(object_exists, self._request, self._forward, self._path),
            is_split=is_split,
        )
        rows = all_rows(source, wanted.marker, wanted.limit)
        if isinstance(rows, Finding):
            assert self._root is not None
            self._root = self._root._replace(findings=self._root.findings | {rows})
            return None
        self._release()
        return self._render(rows)

    # --- the response -------------------------------------------------------------------------------------

    def _render(self, rows: Sequence[JsonObject], counts: HeaderMap | None = None) -> Response:
        """Return merged rows in the format that the filter in front expects.

        The headers are the root's, with the ``counts`` of a whole listing.
        """
        headers = {**self._response.headers, **(counts or {}), fields.BACKEND_RECORD_TYPE: OBJECT}
        headers.pop(fields.BACKEND_RECORD_SHARD_FORMAT, None)
        headers.pop(fields.BACKEND_OVERRIDE_NAME_FILTER, None)
        is_text = self._wanted.is_text
        headers["content-type"] = f"{'text/plain' if is_text else 'application/json'}; charset=utf-8"
        body = as_text(rows) if is_text else as_json(rows)
        headers["content-length"] = str(len(body))
        return Response(200 if body else 204, headers, body)

    def _finish(self, response: Response) -> Response:
        """Remove the owner's headers for others, and name policy and sharding."""
        request, headers = self._request, response.headers
        if not request.env.get(environkeys.OWNER):
            for name in self._context.settings.swift_owner_headers:
                headers.pop(name, None)
        policy = self._context.policies.of_header(headers.get(fields.BACKEND_STORAGE_POLICY_INDEX))
        if response.is_success and policy is not None:
            headers["x-storage-policy"] = policy.name
        is_known = fields.BACKEND_SHARDING_STATE in headers or response.status == 404
        if request.env.get(environkeys.RESELLER_REQUEST) and is_known:
            sharding = headers.get(fields.SYSMETA_SHARDING, "")
            headers["x-container-sharding"] = str(sharding.lower() == "true")
        return response
