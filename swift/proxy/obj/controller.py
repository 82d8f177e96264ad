"""Objects at the proxy: the verbs and their authorisation (spec: public-api.md §8, proxy.md §10-12)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from swift.base.entity import EntityPath
from swift.base.etag import unquote_etag
from swift.base.truth import is_true
from swift.cluster.quorum import best_status, fill_missing
from swift.cluster.transport import BackendResponse
from swift.gateway.info import ContainerInfo, container_info
from swift.gateway.subrequest import drained
from swift.http import environkeys, fields
from swift.http.conditional import is_outdated_range_response
from swift.http.cryptokeys import is_encrypted_response
from swift.http.headers import HeaderMap
from swift.http.mediatypes import TypeGuesser
from swift.http.objectlock import CHECK, parse_lock
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.http.validate import check_metadata
from swift.proxy.backend import backend_headers, is_newest
from swift.proxy.context import ProxyContext
from swift.proxy.controller import Change, Controller, authorize, write_to_nodes
from swift.proxy.obj.commit.conditional import ConditionalChanger, ReplicaRepair, is_conditional
from swift.proxy.obj.commit.stored import IF_DELETE_AT, check_expiry_unchanged
from swift.proxy.obj.location import ObjectLocation, WriteLocation, locate, locate_for_write
from swift.proxy.obj.read.ec import ArchiveReader
from swift.proxy.obj.read.resume import ResumableBody
from swift.proxy.obj.read.striped import make_striped_body
from swift.proxy.obj.rowupdates import ensure_row_majority, send_updates, unsent_updates, write_attempts
from swift.proxy.obj.scheme import Schemes
from swift.proxy.obj.write.checks import (
    check_content_type,
    check_upload,
    convert_delete_after,
)
from swift.proxy.obj.write.ec import ArchiveCoder
from swift.proxy.obj.write.put import Uploader
from swift.proxy.obj.write.restore import ArchiveRestorer
from swift.proxy.reading import (
    ReadPlan,
    SourceSearch,
    source_response,
)
from swift.proxy.results import best_response, client_response, without_swift_bytes
from swift.proxy.shards import SPLIT_STATES, updating_shard

_CIPHERTEXT = "The object is encrypted, and the pipeline has no keymaster and encryption to decrypt it."
_LOCK_SYSMETA = fields.SYSMETA_S3_OBJECT_LOCK.removeprefix(fields.CONTAINER_SYSMETA)


class ObjectController(Controller):
    """GET, HEAD, PUT, POST and DELETE of objects."""

    kind = "object"

    def __init__(self, context: ProxyContext, forward: Callable[[Request], Response], guesser: TypeGuesser):
        super().__init__(context)
        self._forward = forward
        self._guesser = guesser
        schemes = Schemes(context)
        coder = ArchiveCoder(context, schemes)
        self._archive_reader = ArchiveReader(context, self.backends, schemes)
        restorer = ArchiveRestorer(context, self.backends, self._archive_reader.read, coder)
        repair = ReplicaRepair(self.backends, restorer.restore)
        self._uploader = Uploader(context, self.backends, coder, repair)
        self._conditional_changer = ConditionalChanger(context, self.backends, repair)

    def _container_info(self, request: Request, path: EntityPath) -> ContainerInfo:
        """Return the container's info and put its policy into the request's log environment."""
        prefix = self.context.limits.auto_create_account_prefix
        skip_pct = self.context.settings.container_existence_skip_cache_pct
        info = container_info(
            request,
            self._forward,
            path.account,
            str(path.container),
            internal_prefix=prefix,
            skip_pct=skip_pct,
        )
        if info.status >= 500:
            # Its existence, owner and policy are unknown.
            raise HTTPError(503)
        request.env[environkeys.LOGGED_POLICY] = info.policy_index
        return info

    # reading

    def handle_read(self, request: Request, path: EntityPath) -> Response:
        """Handle GET or HEAD from the first good replica, or from enough fragment archives."""
        info = self._container_info(request, path)
        request.acl = info.read_acl
        denied = authorize(request)
        if denied is not None:
            return denied
        location = locate(self.context, request, path, info)
        headers = backend_headers(self.context, request, transfer=True)
        headers[fields.BACKEND_STORAGE_POLICY_INDEX] = str(location.policy.index)
        if self.context.settings.allow_open_expired and is_true(headers.get("x-open-expired")):
            headers[fields.BACKEND_OPEN_EXPIRED] = "true"
        response = self._read(request, path, location, headers)
        if is_outdated_range_response(request.headers, response):
            drained(response)
            wanted = request.headers.pop("range")
            headers.pop("range", None)
            try:
                response = self._read(request, path, location, headers)
            finally:
                request.headers["range"] = wanted
        if is_encrypted_response(response.headers) and not _accepts_ciphertext(request):
            return self._refuse_ciphertext(request, response)
        return _with_policy(_without_listing_size(response), location)

    def _refuse_ciphertext(self, request: Request, response: Response) -> Response:
        """Return the error for an encrypted object that no filter of the pipeline decrypts."""
        text = f"ERROR {request.method} {request.path_qs}: {_CIPHERTEXT}"
        self.context.telemetry.log.error(text, txid=request.env.get(environkeys.TRANS_ID))
        response.discard()
        response.report_end(0, False)
        return error_response(500, _CIPHERTEXT, content_type=TEXT)

    def _read(
        self, request: Request, path: EntityPath, location: ObjectLocation, headers: HeaderMap
    ) -> Response:
        """Return the client's response; ``headers`` are those for the backends."""
        if location.policy.is_ec:
            return self._archive_reader.read(request, location, headers)
        planner = self.context.planner(location.policy.index)
        nodes = planner.for_read(location.view, location.part, self.kind)
        newest = is_newest(request.headers)
        timeouts = self.backends.read_timeouts(planner.settings, newest=newest)
        plan = ReadPlan(request.method, path, location.part, headers, request.query, newest, timeouts)
        settings, rates = planner.settings, self.context.rates
        if settings.striping_memory:
            nodes.reorder(rates.slow_last)
        search = SourceSearch(self.backends, settings, plan, nodes)
        found = search.find()
        if found is None:
            return search.failure()
        response = source_response(found[0])
        if not isinstance(response.body, bytes):
            source = (self.backends, search.plan, nodes, found)
            striped_body = make_striped_body(*source, settings, rates) if settings.striping_memory else None
            response.body = striped_body or ResumableBody(*source, self.context.streams)
        return response

    # writing

    def _container_for_write(
        self, request: Request, path: EntityPath, *, may_sync: bool
    ) -> ContainerInfo | Response:
        """Return the container of a write, or an error response if it is denied or has no container.

        Requests of container sync are authorized by the container's key if they ``may_sync``.
        """
        info = self._container_info(request, path)
        request.acl = info.write_acl
        if may_sync and info.sync_key:
            request.env[environkeys.SYNC_KEY] = info.sync_key
        denied = authorize(request)
        return denied or (info if info.exists else error_response(404))

    def _locate_for_write(self, request: Request, path: EntityPath, info: ContainerInfo) -> WriteLocation:
        """Return the location with the shard that takes its row; raises ``HTTPError`` 503."""
        location = locate_for_write(self.context, request, path, info)
        if info.sharding_state not in SPLIT_STATES:
            return location
        settings = self.context.settings
        shard = updating_shard(
            request,
            self._forward,
            location.path,
            recheck_s=settings.recheck_updating_shard_ranges,
            skip_pct=settings.container_updating_shard_ranges_skip_cache_pct,
        )
        return replace(location, shard=shard)

    def handle_put(self, request: Request, path: EntityPath) -> Response:
        """Store an object."""
        headers = request.headers
        if headers.get("if-none-match", "*").strip() != "*":
            return error_response(400, "If-None-Match only supports *", content_type=TEXT)
        info = self._container_for_write(request, path, may_sync=True)
        if isinstance(info, Response):
            return info
        check_upload(request, self.context.limits, self._guesser, str(path.obj))
        if fields.TRANSIENT_S3_LOCK in headers:
            # A majority of the primaries must store the lock.
            headers.setdefault(fields.BACKEND_OBJECT_LOCK, CHECK)
            _check_lock_and_expiry(headers)
        if "etag" in headers:
            headers["etag"] = unquote_etag(headers["etag"])
        location = self._locate_for_write(request, path, info)
        attempts = write_attempts(self.context, request, location)
        return _with_policy(self._uploader.put(request, location, attempts), location)

    def handle_post(self, request: Request, path: EntityPath) -> Response:
        """Replace an object's metadata."""
        info = self._container_for_write(request, path, may_sync=False)
        if isinstance(info, Response):
            return info
        convert_delete_after(request)
        if not request.headers.get("content-type"):
            request.headers.pop("content-type", None)
        check_content_type(request)
        check_metadata(request.headers, "object", self.context.limits)
        _check_locks(request, info)
        location = self._locate_for_write(request, path, info)
        attempts = write_attempts(self.context, request, location)
        if is_conditional(request.headers):
            planner = self.context.planner(location.policy.index)
            need = self.context.write_quorum(len(attempts))
            _sent, responses = self._conditional_changer.change(
                request,
                location,
                attempts,
                lambda: planner.for_read(location.view, location.part, self.kind),
                need,
            )
            return _with_policy(best_response(responses, len(attempts), need), location)
        change = Change("POST", path, location.view, location.part, attempts)
        responses, need = write_to_nodes(self.context, self.backends, request, change)
        return _with_policy(self._post_response(request, location, responses, attempts, need), location)

    def _post_response(
        self,
        request: Request,
        location: WriteLocation,
        responses: list[BackendResponse],
        attempts: list[HeaderMap],
        need: int,
    ) -> Response:
        """Send a POST to handoffs too if only a minority has the object, which may not have moved yet."""
        count = len(attempts)
        accepted = sum(1 for a in responses if a.status == 202)
        missing = sum(1 for a in responses if a.status == 404)
        if 0 < accepted < need and missing:
            primaries = {node.id for node in location.view.primaries(location.part)}
            # Sorting is stable: in ring order, those to be avoided last.
            is_avoided = self.context.health.is_avoided
            for node in sorted(location.view.handoffs(location.part), key=lambda node: is_avoided(node.key)):
                if not missing or accepted >= need:
                    break
                if node.id in primaries:
                    continue
                missing -= 1
                posting = self.backends.make_request(node, location.part, "POST", location.path, attempts[-1])
                response = self.backends.request(posting)
                if response is not None and response.status == 202:
                    accepted += 1
                    responses.append(response)
        position = best_status(fill_missing((a.status for a in responses), count), need)
        if position is None or position >= len(responses):
            return error_response(503)
        if responses[position].status == 404 and accepted:
            return error_response(503)
        return client_response(responses[position])

    def handle_delete(self, request: Request, path: EntityPath) -> Response:
        """Delete an object; nodes that never had it agree with those that delete it."""
        info = self._container_for_write(request, path, may_sync=True)
        if isinstance(info, Response):
            return info
        _check_locks(request, info)
        location = self._locate_for_write(request, path, info)
        planner = self.context.planner(location.policy.index)
        if IF_DELETE_AT in request.headers:
            nodes = list(planner.for_read(location.view, location.part, self.kind))
            check_expiry_unchanged(self.backends, location, nodes, request.headers)
        _nodes, count = planner.for_delete(location.view, location.part)
        attempts = write_attempts(self.context, request, location, count)
        if is_conditional(request.headers):
            need = self.context.write_quorum(count)
            attempts, responses = self._conditional_changer.change(
                request, location, attempts, lambda: planner.for_delete(location.view, location.part)[0], need
            )
            return _with_policy(
                self._delete_response(request, location, attempts, responses, need, (204,)), location
            )
        change = Change(
            "DELETE",
            path,
            location.view,
            location.part,
            attempts,
            nodes=lambda: planner.for_delete(location.view, location.part)[0],
        )
        responses, need = write_to_nodes(self.context, self.backends, request, change)
        # A node that never had the object has stored a tombstone and updated its container servers.
        return _with_policy(
            self._delete_response(request, location, attempts, responses, need, (204, 404)), location
        )

    def _delete_response(
        self,
        request: Request,
        location: WriteLocation,
        attempts: list[HeaderMap],
        responses: list[BackendResponse],
        need: int,
        left_tombstone: tuple[int, ...],
    ) -> Response:
        response = best_response(responses, len(attempts), need, {404: 204})
        if response.status == 409 and request.has_generated_timestamp and not is_conditional(request.headers):
            # Newer writes overtook each try: the deletion has happened before them.
            return error_response(204)
        if response.status == 404 and not _majority_lacks_object(
            responses, len(location.view.primaries(location.part))
        ):
            if sum(1 for found in responses if found.status in left_tombstone) < need:
                return error_response(503)
            # The object is deleted even if no node that responded had it.
            had = next((found for found in responses if found.status == 204), None)
            response = response if had is None else client_response(had)
        if location.is_strongly_listed and response.status in (204, 404):
            # An object that is reported as absent must not be listed either.
            deleted = [found for found in responses if found.status in left_tombstone]
            if not ensure_row_majority(self.context, request, location, deleted, "DELETE", {}):
                return error_response(503)
        if response.status == 204:
            unsent = unsent_updates(attempts, responses, accepted=left_tombstone)
            send_updates(self.context, request, location, unsent, "DELETE", {})
        return response


def _check_locks(request: Request, info: ContainerInfo) -> None:
    """Require reservations by a majority of the primaries for a change of an object that may be locked."""
    if _LOCK_SYSMETA in info.sysmeta:
        request.headers.setdefault(fields.BACKEND_OBJECT_LOCK, CHECK)
        _check_lock_and_expiry(request.headers)


def _check_lock_and_expiry(headers: HeaderMap) -> None:
    """Raise ``HTTPError`` 400 for an object that would be locked and expire."""
    if "x-delete-at" in headers and parse_lock(headers.get(fields.TRANSIENT_S3_LOCK)).is_locked(time.time()):
        raise HTTPError(400, "A locked object does not expire", content_type=TEXT)


def _majority_lacks_object(responses: list[BackendResponse], primaries: int) -> bool:
    """Return True if a majority of the primaries responded 404; handoffs seldom have an object."""
    absent = sum(1 for a in responses if a.status == 404 and a.node is not None and a.node.index is not None)
    return 2 * absent > primaries


def _without_listing_size(response: Response) -> Response:
    """Return the response without the size in its content type, which is only for listings."""
    kind = response.headers.get("content-type", "")
    if "swift_bytes=" in kind:
        response.headers["content-type"] = without_swift_bytes(kind)
    return response


def _with_policy(response: Response, location: ObjectLocation) -> Response:
    """Set the policy header for filters and the access log; clients never see it."""
    response.headers[fields.BACKEND_STORAGE_POLICY_INDEX] = str(location.policy.index)
    return response


def _accepts_ciphertext(request: Request) -> bool:
    """Return True if an object may be returned as it is stored: a filter or a daemon decrypts or moves it."""
    env = request.env
    return bool(env.get(environkeys.CIPHERTEXT_ACCEPTED)) or is_true(env.get(environkeys.CRYPTO_OVERRIDE))
