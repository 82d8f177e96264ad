"""The object server: verbs on one node's objects (spec: object-server.md).

Each verb is three steps: parse the request (pure), one blocking call in the device's thread pool that
decides and acts while the object is held, and the response with its container updates. The rules of a
verb live in its own file; here they are put together.
"""

from __future__ import annotations

import errno
import pickle
import random
import time
from collections.abc import Callable, Mapping
from functools import partial
from urllib.parse import unquote

from swift import green
from swift.base.errors import DeviceUnavailable, NoSpace
from swift.compose import backend_context, merged, process_of
from swift.config.common import StorageSettings
from swift.http import fields
from swift.http.headers import HeaderMap, lower_name
from swift.http.request import Request
from swift.http.response import HTML, HTTPError, Response, error_response
from swift.obj import get
from swift.obj.containerupdates import UpdateMaker, UpdateSender, without_swift_bytes
from swift.obj.delete import DeletePlan, DeleteResult, parse_delete, store_delete
from swift.obj.post import PostResult, parse_post, store_post
from swift.obj.put import parse_put
from swift.obj.replication import digests
from swift.obj.request import (
    PLAIN,
    conditions_of,
    is_flagged,
    key_of,
    opens_expired,
    policy_of,
    read_options_of,
)
from swift.obj.reserved import ReservedDelete, ReservedLook, ReservedPost
from swift.obj.settings import ObjectSettings
from swift.obj.ssync.receiver import SsyncContext, SsyncHead, serve_ssync
from swift.obj.stores import EngineSettings, make_stores
from swift.obj.upload import PutSession, begin_documents, follow_commands, parse_stages
from swift.platform.devices import Devices
from swift.platform.regularfiles import CALL_FAILED, DEVICE_LOST, IrregularFile, UnreadableFile
from swift.platform.slots import SharedSlots
from swift.policy.policy import Policy
from swift.runtime.backendapp import BackendApp, BackendContext, Handler, split_backend_path
from swift.store.api import EXPIRED, LIVE, ObjectKey, ReadOptions
from swift.store.calls import Effort
from swift.store.errors import BadFragmentIndex, CorruptBody, FilesChanged, HashCollision, MisplacedLeft
from swift.store.handle import StoreHandle
from swift.store.metadata import AttributesTooLarge
from swift.store.registry import StoreRegistry
from swift.telemetry.events import LabelledEvent
from swift.telemetry.repeatederrors import RepeatedErrorLog

_LABELLED_TIMING = LabelledEvent(
    "swift_object_server_request_timing",
    "Duration of a request.",
    ("account", "container", "method", "policy", "status"),
)

#: Like the other limits of metadata it is 400: the part of them that only the filesystem knows.
_SYSMETA = fields.OBJECT_SYSMETA.title()
_TOO_MUCH_METADATA = "Metadata too large for this store: name, headers and metadata share their room"
_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EOPNOTSUPP))
_READS = frozenset(("GET", "HEAD"))


class ObjectServer(BackendApp):
    """Serves the objects of one node."""

    server_type = "object"
    logs_text_length = True
    replication_verbs = frozenset(("REPLICATE", "SSYNC"))

    def __init__(self, context: BackendContext, settings: ObjectSettings, stores: StoreRegistry):
        # The table of verbs, which is made next, depends on them.
        self.settings = settings
        super().__init__(context)
        self._stores = stores
        self._stored = settings.stored_headers
        self._update_sender = UpdateSender(context, settings, stores.at)
        self._digest_cache = digests.DigestCache(context.clock.monotonic)
        self.ssync_slots = SharedSlots(settings.replication_concurrency)

    def verbs(self) -> Mapping[str, Handler]:
        """Return the verbs of object-server.md."""
        table: dict[str, Callable[[Request], Response]] = {
            "GET": self.get,
            "HEAD": self.head,
            "PUT": self._slowed(self.put) if self.settings.slow else self.put,
            "POST": self.post,
            "DELETE": self._slowed(self.delete),
            "REPLICATE": self.replicate,
            "SSYNC": self.ssync,
            "RESERVE": self.reserve,
        }
        return {verb: _translated(handler, self.context) for verb, handler in table.items()}

    def _slowed(self, handler: Handler) -> Handler:
        """Wrap a handler: delay it by the ``slow`` option and log slow DELETEs."""
        least_s = self.settings.slow
        told_s = self.settings.slow_delete_log_threshold_seconds

        def handle(request: Request) -> Response:
            started = time.monotonic()
            try:
                return handler(request)
            finally:
                took_s = time.monotonic() - started
                if request.method == "DELETE" and 0 < told_s < took_s:
                    text = f"slow DELETE {request.raw_path}: {took_s:.1f} s"
                    self.context.telemetry.log.warning(text, txid=request.headers.get("x-trans-id"))
                if took_s < least_s:
                    green.sleep(least_s - took_s)

        return handle

    def _record_labelled_metrics(self, request: Request, response: Response, seconds: float) -> None:
        """Send the duration of a request for an object (spec: proxy.md §17)."""
        names = request.raw_path.split("/", 5)
        if len(names) < 6:
            return
        labels = {
            "account": unquote(names[3]),
            "container": unquote(names[4]),
            "method": request.method,
            "policy": request.headers.get(fields.BACKEND_STORAGE_POLICY_INDEX, "0"),
            "status": str(response.status),
        }
        _LABELLED_TIMING.time(self.context.telemetry.statsd, labels, seconds)

    def _is_logged(self, request: Request) -> bool:
        """Replication makes far more requests than clients; its lines are for developers (§1)."""
        is_replication = request.method in self.replication_verbs or is_flagged(
            request.headers, fields.BACKEND_REPLICATION
        )
        return not is_replication or self.context.telemetry.log.is_debug_enabled

    def _key(self, request: Request) -> ObjectKey:
        """Return the object of a request, by the partition in which this node keeps it.

        While partitions are being split, that and what has to be linked is told by the node's own ring:
        requests come by either partition, from proxies whose rings are of different ages.
        """
        key = key_of(request, self.context)
        is_splitting = fields.BACKEND_NEXT_PART_POWER in request.headers
        home = self.context.partitions.find_partition(
            key.partition, key.policy.ring_name, key.hash, is_splitting=is_splitting
        )
        if home is None:
            return key
        request.headers.pop(fields.BACKEND_NEXT_PART_POWER, None)
        if home.next_part_power is not None:
            request.headers[fields.BACKEND_NEXT_PART_POWER] = str(home.next_part_power)
        key = key._replace(partition=home.partition)
        if home.before is not None:
            self._store(key).relink(key, home.before)
        return key

    def _store(self, key: ObjectKey) -> StoreHandle:
        """Return the engine of an object, once everything that needs no disk is checked."""
        return self._stores.at(key.policy, key.device)

    # --- reading -------------------------------------------------------------------------------------

    def get(self, request: Request) -> Response:
        """GET, verified (§6)."""
        key = self._key(request)
        options = read_options_of(request, self.context)
        store = self._store(key)
        try:
            return self._get_once(request, store, key, options)
        except CorruptBody as error:
            # It is quarantined now, unless another file had replaced it: then the answer is about that.
            return self._get_once(request, store, key, options, quarantine_reason=str(error))

    def _get_once(
        self,
        request: Request,
        store: StoreHandle,
        key: ObjectKey,
        options: ReadOptions,
        quarantine_reason: str = "",
    ) -> Response:
        stored = store.open(key, options)
        state = stored.state
        settings = self.settings
        percent = settings.etag_validate_pct
        stored.prepare(
            keep_cache=get.keeps_cache(request, state, settings),
            check_md5=percent >= 100.0 or random.random() * 100.0 < percent,
        )
        if state.kind != LIVE:
            stored.close()
            state.quarantine_reason = state.quarantine_reason or quarantine_reason
            return get.not_found(request, state)
        try:
            get.check_confirmed(request, state)
            headers = get.object_headers(state, self._stored)
            unmet = get.unmet_condition(request, state, headers)
        except BaseException:
            stored.close()
            raise
        if unmet is not None:
            stored.close()
            return unmet
        failed = partial(self.context.telemetry.faults.note, key.device)
        try:
            return get.respond(request, stored, headers, failed)
        except OSError as error:
            raise UnreadableFile(error.errno, error.strerror) from error

    def head(self, request: Request) -> Response:
        """HEAD (§6)."""
        key = self._key(request)
        options = read_options_of(request, self.context)
        state = self._store(key).stat(key, options)
        if state.kind != LIVE:
            return get.not_found(request, state)
        get.check_confirmed(request, state)
        headers = get.object_headers(state, self._stored)
        unmet = get.unmet_condition(request, state, headers)
        if unmet is not None:
            return unmet
        headers["content-length"] = str(state.size)
        return Response(200, headers)

    # --- writing -------------------------------------------------------------------------------------

    def put(self, request: Request) -> Response:
        """PUT (§4)."""
        self.check_date(request)
        key = self._key(request)
        plan = parse_put(request, key, self.context.limits, self._stored)
        options = ReadOptions(plan.timestamp.seconds, opens_expired(request))
        fragment = request.headers.get(fields.BACKEND_SSYNC_FRAG_INDEX, "")
        if fragment.isascii() and fragment.isdigit():
            options = options._replace(fragment=int(fragment))
        store, size_max = self._store(key), self.context.limits.max_file_size
        result = PutSession(request, store, key, options, plan, self.settings, size_max).run()
        before = result.before.delete_at if result.before.kind == LIVE else None
        make = UpdateMaker(request, key, self.context, self.settings)
        updates = make.expiry(before, plan.delete_at, result.metadata, plan.timestamp)
        container = make.container("PUT", make.put_row(result.metadata, plan.footers))
        told = self._update_sender.send(request, key, updates, container)
        return Response(201, {"content-type": HTML, "etag": f'"{result.etag}"', **told})

    def post(self, request: Request) -> Response:
        """POST (§5)."""
        self.check_date(request)
        key = self._key(request)
        plan = parse_post(request, self.context.limits, self._stored)
        options = ReadOptions(plan.timestamp.seconds, opens_expired(request))
        store = self._store(key)
        result = store_post(store, key, options, plan)
        return self._post_response(request, key, result)

    def _post_response(self, request: Request, key: ObjectKey, result: PostResult) -> Response:
        change, before = result.change, result.before
        make = UpdateMaker(request, key, self.context, self.settings)
        delete_at = change.metadata.get("X-Delete-At")
        updates = make.expiry(
            before.delete_at, int(delete_at) if delete_at else None, before.metadata, before.data_timestamp
        )
        row = make.post_row(before, change.content_type, change.ctype_timestamp, change.timestamp)
        self._update_sender.send(request, key, updates, make.container("PUT", row))
        headers: HeaderMap = {
            lower_name(name): value for name, value in before.metadata.items() if name.startswith(_SYSMETA)
        }
        headers[fields.BACKEND_CONTENT_TYPE] = without_swift_bytes(change.content_type)
        return error_response(202, headers=headers)

    def delete(self, request: Request) -> Response:
        """DELETE (§8)."""
        self.check_date(request)
        key = self._key(request)
        plan = parse_delete(request)
        options = ReadOptions(plan.timestamp.seconds)
        store = self._store(key)
        result = store_delete(store, key, options, plan)
        return self._deleted(request, key, plan, result)

    def _deleted(self, request: Request, key: ObjectKey, plan: DeletePlan, result: DeleteResult) -> Response:
        verdict, before = result.verdict, result.before
        if verdict.bare:
            return error_response(verdict.status, verdict.text)
        make = UpdateMaker(request, key, self.context, self.settings)
        had = before.delete_at if verdict.tombstone and before.kind in (LIVE, EXPIRED) else None
        updates = make.expiry(had, None, before.metadata, before.data_timestamp)
        container = None
        if verdict.tombstone:
            container = make.container("DELETE", {"x-timestamp": plan.timestamp.internal})
        told = self._update_sender.send(request, key, updates, container)
        headers = {
            **told,
            fields.BACKEND_TIMESTAMP: max(plan.timestamp, before.write_timestamp).internal,
            fields.BACKEND_CONTENT_TYPE: without_swift_bytes(before.metadata.get("Content-Type", "")),
        }
        return error_response(verdict.status, headers=headers)

    def reserve(self, request: Request) -> Response:
        """RESERVE: a conditional POST or DELETE of an object that is reserved for its writer.

        HEAD changes nothing: it reserves the object while the sender reads the version and repairs other
        nodes. RESERVE is a verb of its own, so that nodes without support do not take it for an ordinary
        request.
        """
        conditions, stages = conditions_of(request.headers), parse_stages(request)
        method = request.headers.get(fields.BACKEND_RESERVED_METHOD, "")
        if method not in ("HEAD", "POST", "DELETE"):
            raise HTTPError(400, f"{method!r} cannot be reserved", content_type=PLAIN)
        if stages is None or not stages.reserve or stages.footers:
            raise HTTPError(400, "RESERVE is for promises", content_type=PLAIN)
        self.check_date(request)
        # What follows, its line in the log included, is about that.
        request.method = method
        key = self._key(request)
        store = self._store(key)
        if method == "HEAD":
            lookup = ReservedLook(store, key, ReadOptions(0.0, opens_expired(request)), request.timestamp)
            follow_commands(lookup, begin_documents(request.body, stages, self.settings, {}))
            return error_response(204)
        if conditions is None:
            raise HTTPError(400, f"RESERVE of {method} is for conditions", content_type=PLAIN)
        if method == "POST":
            posting = parse_post(request, self.context.limits, self._stored)
            options = ReadOptions(posting.timestamp.seconds, opens_expired(request))
            post = ReservedPost(store, key, options, posting, conditions)
            return self._post_response(
                request, key, follow_commands(post, begin_documents(request.body, stages, self.settings, {}))
            )
        deleting = parse_delete(request)
        options = ReadOptions(deleting.timestamp.seconds)
        delete = ReservedDelete(store, key, options, deleting, conditions)
        return self._deleted(
            request,
            key,
            deleting,
            follow_commands(delete, begin_documents(request.body, stages, self.settings, {})),
        )

    # --- replication ---------------------------------------------------------------------------------

    def replicate(self, request: Request) -> Response:
        """REPLICATE: suffix hashes, or suffixes to be marked dirty (§13)."""
        policy = policy_of(request, self.context)
        device, partition, suffixes = split_backend_path(request, 2, 3)
        self.context.partitions.check(partition, policy.ring_name)
        store = self._stores.at(policy, device)
        headers: HeaderMap = {"content-type": HTML}
        found: object = None
        if suffixes:
            names = suffixes.split("-")
            store.invalidate(device, partition, policy, names)
            if is_flagged(request.headers, fields.BACKEND_MAKE_DURABLE):
                store.maintenance.make_durable(device, partition, policy, names)
                headers[fields.BACKEND_MAKE_DURABLE] = "true"
        elif is_flagged(request.headers, fields.BACKEND_PARTITION_DIGESTS):
            return self._digests(request, device, policy)
        else:
            found = store.hashes(device, partition, policy)
        return Response(200, headers, pickle.dumps(found, 2))

    def _digests(self, request: Request, device: str, policy: Policy) -> Response:
        """Return the digests of many partitions at once, for our own daemons."""
        length = request.body.length
        if length is None or length > digests.BODY_BYTES_MAX:
            raise HTTPError(413 if length else 411, "a question is a short body", content_type=PLAIN)
        try:
            asked = digests.decode_request(request.body.read(-1))
        except digests.BadDigestMessage as error:
            raise HTTPError(400, str(error), content_type=PLAIN)
        for part in asked:
            self.context.partitions.check(str(part), policy.ring_name)
        store = self._stores.at(policy, device)
        told = store.call(Effort.HASHES, self._digest_cache.digests, device, policy, asked)
        headers = {"content-type": "application/json", fields.BACKEND_PARTITION_DIGESTS: "true"}
        return Response(200, headers, digests.encode_response(told))

    def ssync(self, request: Request) -> Response:
        """SSYNC: a conversation in which another node pushes objects (§14)."""
        device, partition = split_backend_path(request, 2, 2)
        policy = policy_of(request, self.context)
        self.context.partitions.check(partition, policy.ring_name)
        text = request.headers.get(fields.BACKEND_SSYNC_FRAG_INDEX)
        if text is not None and not (text.isascii() and text.isdigit()):
            raise HTTPError(400, f"Invalid X-Backend-Ssync-Frag-Index {text!r}")
        session = SsyncHead(device, partition, policy, None if text is None else int(text))
        return serve_ssync(request, session, self._ssync_context(session))

    def _ssync_context(self, session: SsyncHead) -> SsyncContext:
        """Return the server's context for an ssync session; raises ``DeviceUnavailable``."""
        context, settings = self.context, self.settings
        store = self._stores.at(session.policy, session.device).for_purpose(Effort.SSYNC)
        handlers = self.verbs()
        return SsyncContext(
            settings=settings,
            store=store,
            execute=lambda request: self._call_handler(handlers[request.method], request),
            slots=self.ssync_slots,
            now_s=context.clock.time,
            log=context.telemetry.log,
        )


def _translated(handler: Handler, context: BackendContext) -> Handler:
    """Return a handler whose engine errors become statuses."""
    failures = RepeatedErrorLog(context.telemetry.log, context.clock)

    def handle(request: Request) -> Response:
        try:
            return handler(request)
        except HashCollision:
            # A proxy treats a 403 to a change as an object lock and rejects the request for all nodes.
            raise HTTPError(403 if request.method in _READS else 503)
        except (FilesChanged, CorruptBody, MisplacedLeft):
            raise HTTPError(503)
        except BadFragmentIndex:
            raise HTTPError(500)
        except AttributesTooLarge:
            # Another node would refuse it as well: 507 would have the proxy try, and avoid, all of them.
            raise HTTPError(400, _TOO_MUCH_METADATA, content_type=PLAIN)
        except OSError as error:
            device = request.raw_path.split("/", 2)[1]
            context.telemetry.faults.note(device, error)
            translated = _translate(error, request.method, device, context.devices)
            failures.error(f"ERROR {device} fails a {request.method}: {error.strerror}")
            raise translated from error

    return handle


def _translate(error: OSError, method: str, device: str, devices: Devices) -> Exception:
    """Return the answer to a device's or process's error: 507 has a proxy avoid the device, 503 does not.

    A call that fails in a read says that this copy is unknown at the moment. A device that fails in a write
    takes none: the proxy goes to another.
    """
    if error.errno in _NO_ROOM:
        return NoSpace(error.strerror or "no space")
    if isinstance(error, IrregularFile):
        return HTTPError(503)
    if error.errno in DEVICE_LOST or (error.errno in CALL_FAILED and method not in _READS):
        return DeviceUnavailable(device)
    if isinstance(error, FileNotFoundError) and not devices.is_usable(device):
        # Else it is something that others remove as well.
        return DeviceUnavailable(device)
    return HTTPError(503, headers=dict(get.UNREADABLE) if isinstance(error, UnreadableFile) else None)


def app_factory(global_conf: Mapping[str, str], **local_conf: str) -> ObjectServer:
    """PasteDeploy entry point ``egg:swift#object``; raises ``ConfigError``."""
    context, settings = backend_context(
        global_conf, local_conf, server_type="object", settings_class=ObjectSettings
    )
    conf = merged(global_conf, local_conf)
    stores = make_stores(
        context,
        settings,
        StorageSettings.parse(conf),
        engines=EngineSettings.read(global_conf.get("__file__", "")),
        at_exit=process_of(conf).at_exit.append,
    )
    return ObjectServer(context, settings, stores)
