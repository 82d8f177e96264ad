"""A whole cluster in one process without sockets: the proxy over a transport that calls the servers.

Every server is the real one on a device directory of its own; the transport runs its handler in a green
thread, so that bodies stream, and breaks things as the test says (``Faults``).
"""

import contextlib
import itertools
import os
import time
from collections import defaultdict
from dataclasses import replace
from types import SimpleNamespace

from swift import green
from swift.account.server import AccountServer
from swift.base.hashing import PathHasher
from swift.base.limits import Limits
from swift.cluster.localreads import LocalEndpoint, LocalReads
from swift.cluster.rings import Rings
from swift.cluster.serverauth import check_refusal
from swift.cluster.transport import (
    BackendResponse,
    BrokenOff,
    MalformedResponse,
    NodeAddress,
    NodeRequest,
    NodeTimeouts,
    TransportError,
)
from swift.container.server import ContainerServer
from swift.http import fields
from swift.http.body import BodyError, ClientDisconnected, FileBody, RequestBody, ResponseBody
from swift.http.request import Request
from swift.http.response import error_response
from swift.obj.server import ObjectServer, make_stores
from swift.obj.settings import ObjectSettings
from swift.obj.stores import EngineSettings
from swift.platform.devices import Devices
from swift.policy.policy import ErasureCode, Policies, Policy
from swift.proxy.app import ProxyApp
from swift.proxy.context import ProxyContext
from swift.proxy.settings import ProxySettings
from swift.ring.builder import RingBuilder
from swift.runtime.backendapp import BackendContext
from swift.store.packed.settings import PackedSettings
from swift.telemetry.inforegistry import InfoRegistry
from swift.telemetry.log import silent_log
from swift.telemetry.metrics import Registry
from swift.telemetry.telemetry import Telemetry
from swift.wire import etagtrailer
from test.support.tiers import on_node, packed_names, packs

PORTS = {"account": 2, "container": 1, "object": 0}
NODES = 6

SIZE_MAX = Limits().max_file_size


def node_port(kind, number):
    """Return the port of a server of node 1…n."""
    return 6200 + 10 * number + PORTS[kind]


#: Policy 0 is replicated; the others code objects in small segments, one of them keeps every archive twice.
POLICIES = (
    Policy(0, "gold", is_default=True),
    Policy(1, "ec32", ec=ErasureCode("liberasurecode_rs_vand", 3, 2, 1000)),
    Policy(2, "twice", ec=ErasureCode("liberasurecode_rs_vand", 2, 1, 1000, 2)),
    Policy(3, "xor", ec=ErasureCode("flat_xor_hd_3", 3, 3, 1000)),
)


def write_rings(folder, nodes=NODES):
    """Write ring files: three replicas, or as many as a code needs, over ``nodes`` zones."""
    rings = {kind: (kind, 3) for kind in PORTS}
    rings |= {policy.ring_name: ("object", policy.ec.replicas) for policy in POLICIES if policy.ec}
    for name, (kind, replicas) in rings.items():
        builder = RingBuilder(4, replicas, 1)
        for n in range(1, nodes + 1):
            builder.add_device(
                region=1, zone=n, ip="10.0.0.1", port=node_port(kind, n), device=f"sdb{n}", weight=100.0
            )
        builder.rebalance(seed=3)
        builder.write_ring(str(folder / f"{name}.ring.gz"))


#: Pieces of this size are of a body, smaller ones may be what frames it.
GARBLED_BYTES = 256


class Faults:
    """Faults by port; each is active until it is cleared."""

    def __init__(self):
        self.refuses = set()
        #: port → status answered instead of doing anything.
        self.answers = {}
        #: port → bytes of a response body after which it breaks off.
        self.dies_after = {}
        #: port → bytes of a request body after which sending fails.
        self.stops_taking_after = {}
        #: port → (bytes of a request body, event that taking more waits for).
        self.stalls_taking_after = {}
        #: port → seconds that it takes over each piece of a request body.
        self.takes_s = {}
        #: port → (bytes of a response body, event that the rest waits for).
        self.stalls_after = {}
        #: port → seconds that it takes over each piece of a response body.
        self.gives_s = {}
        #: port → event that its answers wait for.
        self.waits_for = {}
        #: Ports whose 100 Continue promises nothing: neither footers nor trailers are understood.
        self.takes_no_footers = set()
        #: Ports that compute every MD5 themselves.
        self.believes_no_md5 = set()
        #: Ports that are gone once the first stage of an upload was sent.
        self.gone_after_stage = set()
        #: Ports that are gone once they were sent the footers, before they have stored anything.
        self.gone_before_stored = set()
        #: Ports that answer what is no HTTP.
        self.malformed = set()
        #: Ports on whose way a byte of every upload's body is damaged.
        self.garbles = set()
        #: port → how often it still answers something before its connections break.
        self.dies_after_answers = {}
        #: Draws how long every message takes, so that requests meet in any order; None: no time.
        self.jitter = None

    def travel(self):
        """Wait for the network delay of a message."""
        if self.jitter is not None:
            green.sleep(self.jitter.choice((0.0, 0.0, 0.0005, 0.001, 0.002)))


class _Upload(RequestBody):
    """A request body that the sender fills piece by piece (``http.body.RequestBody``)."""

    trailers = {}

    def __init__(self, length):
        self.length = length
        self.received = 0
        #: Headers of every 100 Continue, None after the answer.
        self.signals = green.Queue()
        self.continued = False
        self._pieces = green.Queue()
        self._rest = b""
        self._ended = False

    def put(self, piece):
        self._pieces.put(piece)

    def read(self, size=-1):
        if not self.continued:
            self.send_continue({})
        if size < 0:
            return b"".join(iter(lambda: self.read(1 << 20), b""))
        while not self._rest and not self._ended:
            piece = self._pieces.get()
            if piece is None:
                self._ended = True
            elif isinstance(piece, Exception):
                self._ended = True
                raise piece
            else:
                self._rest = piece
        data, self._rest = self._rest[:size], self._rest[size:]
        self.received += len(data)
        return data

    def send_continue(self, headers):
        self.continued = True
        self.signals.put(dict(headers))

    def begin_next_body(self):
        self._ended = False


class _Download(ResponseBody):
    """A response body as a backend would send it."""

    def __init__(self, response, dies_after, stall=None, pause_s=0.0):
        self.length = int(response.headers.get("content-length") or 0)
        self.closed = False
        self._response = response
        self._pieces = self._cut(response.body)
        self._rest = b""
        self._left = dies_after
        self._given = 0
        self._stall = stall
        self._pause_s = pause_s

    @staticmethod
    def _cut(body):
        for piece in (body,) if isinstance(body, bytes) else body:
            if isinstance(piece, FileBody):
                yield os.pread(piece.fd, piece.length, piece.offset)
            elif piece:
                yield bytes(piece)

    def read(self, size):
        if self._left is not None:
            if self._left <= 0:
                self.close()
                raise BrokenOff("the node died")
            size = min(size, self._left)
        if self._stall is not None and self._given >= self._stall[0] and not self._stall[1].wait(10):
            raise BrokenOff("the node took too long")
        if self._pause_s:
            green.sleep(self._pause_s)
        if not self._rest:
            self._rest = next(self._pieces, b"")
        data, self._rest = self._rest[:size], self._rest[size:]
        self._given += len(data)
        if self._left is not None:
            self._left -= len(data)
        if not data:
            self.close()
        return data

    def read_into(self, buffer):
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def splice_into(self, pipe, size):
        return os.write(pipe, data) if (data := self.read(min(size, 32768))) else 0

    def __iter__(self):
        while piece := self.read(65536):
            yield piece

    def close(self):
        if not self.closed:
            self.closed = True
            self._response.discard()
            self._response.report_end(0, True)


class _Exchange:
    """One request to one server (``cluster.transport.Exchange``)."""

    def __init__(self, transport, number, port, app, request, upload, *, finished=0):
        self._transport = transport
        #: Of the node.
        self.number = number
        self._port = port
        self._upload = upload
        self._method = request.method
        self._final = None
        self._sent = 0
        #: Rounds of the request that were sent to their end.
        self._finished = finished
        #: How often the node was waited for after it was told something.
        self.turns = 0
        self._has_spoken = True
        self.continue_headers = {}
        self.done = green.Event()
        #: What the server said first, once that was waited for.
        self._begun = []
        self._response = None
        self._request = request
        self._app = app
        green.spawn_detached(self._run)

    def _run(self):
        faults = self._transport.faults
        faults.travel()
        if self._port in faults.waits_for:
            self._transport.delayed.append(self.done)
            faults.waits_for[self._port].wait(10)
        if self._port not in faults.answers:
            self._response = self._app.handle(self._request)
        self.done.set()
        self._upload.signals.put(None)

    def _turn(self):
        self.turns += self._has_spoken
        self._has_spoken = False

    def send(self, data):
        self._has_spoken = True
        self._sent += len(data)
        faults = self._transport.faults
        limit = faults.stops_taking_after.get(self._port)
        gone = self._finished and self._port in faults.gone_after_stage
        gone = gone or faults.dies_after_answers.get(self._port, 0) < 0
        if gone or (limit is not None and self._sent > limit):
            self._upload.put(ClientDisconnected("cut"))
            raise TransportError("the node stopped taking")
        stall = faults.stalls_taking_after.get(self._port)
        if stall is not None and self._sent > stall[0] and not stall[1].wait(10):
            raise TransportError("the node takes no more")
        if self._port in faults.takes_s:
            green.sleep(faults.takes_s[self._port])
        if self._port in self._transport.faults.garbles and len(data) >= GARBLED_BYTES:
            data = bytes([data[0] ^ 1, *data[1:]])
        self._upload.put(bytes(data))

    def finish(self, trailers=None):
        self._has_spoken = True
        self._finished += 1
        self._transport.faults.travel()
        self._upload.trailers = trailers or {}
        if self._port in self._transport.faults.gone_before_stored:
            self._upload.put(ClientDisconnected("gone"))
        else:
            self._upload.put(None)

    def wait_response_start(self, within_s):
        if not self._begun:
            try:
                self._begun.append(self._upload.signals.get(time.monotonic() + within_s))
            except green.DeadlineExceeded:
                return False
        return True

    def wait_continue(self):
        self._turn()
        if self._finished and self._port in self._transport.faults.gone_before_stored:
            raise TransportError("the node is gone")
        headers = self._begun.pop() if self._begun else self._upload.signals.get(time.monotonic() + 10)
        self._transport.faults.travel()
        self._may_die()
        if headers is None:
            return self.response()
        self.continue_headers = {} if self._port in self._transport.faults.takes_no_footers else headers
        return None

    def _may_die(self):
        left = self._transport.faults.dies_after_answers
        if self._port in left:
            left[self._port] -= 1
            if left[self._port] < 0:
                self.abort()
                raise TransportError("the node died")

    def response(self):
        self._turn()
        if self._port in self._transport.faults.malformed:
            raise MalformedResponse("no HTTP")
        if self._final is None and self._finished > 1:
            # What it was told at last may have been done, but nobody hears of it.
            self._may_die()
        if self._final is None:
            if self._upload.length is not None:
                self._upload.put(None)
            if not self.done.wait(10):
                raise TransportError("no answer")
            self._final = self._make_reply()
        return self._final

    def _make_reply(self):
        faults = self._transport.faults
        status = faults.answers.get(self._port)
        if status is not None:
            self._response = error_response(status)
        response = self._response
        headers = {name: str(value) for name, value in response.headers.items()}
        if isinstance(response.body, bytes) and "content-length" not in headers:
            headers["content-length"] = str(len(response.body))
        response.headers = headers
        if response.status == 403:
            check_refusal(response.status, headers)
        if self._method == "HEAD" or response.status in (204, 304):
            response.discard()
        dies = faults.dies_after.get(self._port) if self._method == "GET" else None
        stall = faults.stalls_after.get(self._port) if self._method == "GET" else None
        pause_s = faults.gives_s.get(self._port, 0.0) if self._method == "GET" else 0.0
        download = _Download(response, dies, stall, pause_s)
        self._transport.downloads.append(download)
        return BackendResponse(response.status, headers, stream=download, reason=response.reason)

    def abort(self):
        self._upload.put(ClientDisconnected("aborted"))
        if self._final is not None:
            self._final.stream.close()


class MemoryTransport:
    """Calls the server of a port; keeps every request as (kind, node, method, path, headers)."""

    def __init__(self):
        self.apps = {}
        self.faults = Faults()
        self.requests = []
        #: (kind, method, exchange) of the same.
        self.exchanges = []
        #: Every answer's body, to see that none is left open.
        self.downloads = []
        #: The ends of requests that were made to wait.
        self.delayed = []
        #: Signs requests as the transport over sockets does; None: they are not signed.
        self.signer = None

    def stream(self, request):
        port, method = request.node.port, request.method
        path, headers, body = request.path, request.headers, request.body
        if port in self.faults.refuses:
            raise TransportError(f"connection to {port} refused")
        kind, number, app = self.apps[port]
        raw_path, _, query = path.partition("?")
        self.requests.append((kind, number, method, path, dict(headers)))
        length = None if "transfer-encoding" in headers else int(headers.get("content-length", 0))
        upload = _Upload(length)
        if body:
            upload.put(bytes([body[0] ^ 1, *body[1:]]) if port in self.faults.garbles else body)
            if length is None:
                upload.put(None)
        received = dict(headers)
        if port in self.faults.takes_no_footers | self.faults.believes_no_md5:
            received.pop(etagtrailer.OFFER, None)
        if self.signer is not None:
            received["host"] = host = f"{request.node.ip}:{port}"
            text = self.signer.text_of(method, path, host, headers)
            if text:
                line = self.signer.line(text).decode().strip()
                received[fields.BACKEND_SERVER_AUTH] = line.partition(": ")[2]
        request = Request(method, raw_path, received, upload, query=query)
        request.expects_continue = "expect" in headers
        made = _Exchange(
            self, number, port, app, request, upload, finished=int(bool(body) and length is None)
        )
        self.exchanges.append((kind, method, made))
        return made

    def settle(self):
        """Wait for the end of delayed requests."""
        while self.delayed:
            assert self.delayed.pop().wait(10)

    def request_of(self, port, method, path, headers=None, body=b""):
        """Send a request to the server of a port."""
        timeouts = NodeTimeouts(1.0, 30.0)
        return self.request(
            NodeRequest(NodeAddress("10.0.0.1", port), method, path, headers or {}, body, timeouts)
        )

    def request(self, request):
        headers = {**request.headers, "content-length": str(len(request.body))}
        response = self.stream(replace(request, headers=headers)).response()
        return BackendResponse(response.status, response.headers, b"".join(response.stream), response.reason)


class Answer:
    """A response of the simulated cluster, with its body read."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.broke_off = None
        pieces = []
        body = response.body
        try:
            for piece in (body,) if isinstance(body, bytes) else body:
                pieces.append(bytes(piece))
        except BodyError as error:
            self.broke_off = error
        response.discard()
        response.report_end(0, self.broke_off is None)
        self.body = b"".join(pieces)

    def __repr__(self):
        return f"<Answer {self.status} {self.body[:60]!r}>"


class MemoryCache:
    """A ``swift.cache`` in memory."""

    def __init__(self):
        self.values = {}

    def get(self, key, default=None, *, raise_on_error=False):
        return self.values.get(key, default)

    def set(self, key, value, *, ttl_s=0, raise_on_error=False):
        self.values[key] = value

    def delete(self, key, *, server_key=None):
        self.values.pop(key, None)


@contextlib.contextmanager
def _while_among(ports, kind, numbers):
    """Add the ports of nodes to a set of faults during the ``with`` block."""
    added = {node_port(kind, n) for n in numbers}
    ports |= added
    try:
        yield
    finally:
        ports -= added


class SimCluster:
    """The proxy app over real account, container and object servers."""

    def __init__(self, root, rings, *, size_max=SIZE_MAX, packed=packs, local=(), **options):
        """Create the servers; ``packed(number)`` is true for nodes with the packed engine.

        The proxy itself reads the devices of the ``local`` nodes.
        """
        #: Number → the registry of stores of a packed node.
        self.packed_stores = {}
        self._packed = packed
        self.transport = MemoryTransport()
        self.faults = self.transport.faults
        self.hasher = PathHasher(b"", b"sim")
        self.policies = Policies(POLICIES)
        self.root = root
        self._number_of = itertools.count(1)
        for n in range(1, NODES + 1):
            self._add_node(n)
        options = {"account_autocreate": True, "node_timeout": 10.0, **options}
        self.reads = LocalReads(
            self.transport, [self._endpoint(node_port("object", n)) for n in local], Registry(), wait_s=0.2
        )
        self.context = ProxyContext(
            settings=ProxySettings(**options),
            rings=Rings(str(rings), self.policies),
            transport=self.reads if local else self.transport,
            is_own=self.reads.is_own if local else None,
            policies=self.policies,
            limits=Limits(max_file_size=size_max),
            hasher=self.hasher,
            telemetry=Telemetry(silent_log()),
        )
        self.app = ProxyApp(self.context, InfoRegistry(), swift_dir=str(rings))
        self.handle = self.app.handle
        self.cache = MemoryCache()

    def _endpoint(self, port):
        return LocalEndpoint(lambda _ip: True, port, self.transport.apps[port][2])

    def _add_node(self, n):
        devices = self.root / f"node{n}"
        (devices / f"sdb{n}").mkdir(parents=True, exist_ok=True)
        context = BackendContext(
            devices=Devices(str(devices), mount_check=False),
            hasher=self.hasher,
            policies=on_node(self.policies, self._packed(n)),
            telemetry=Telemetry(silent_log()),
            transport=self.transport,
        )
        settings = ObjectSettings(container_update_timeout=5.0)
        engines = EngineSettings(packed=PackedSettings(state_path=str(self.root / f"packed-locks{n}")))
        stores = make_stores(context, settings, engines=engines, at_exit=lambda _close: None)
        if self._packed(n):
            self.packed_stores[n] = stores
        apps = {
            "account": AccountServer(context),
            "container": ContainerServer(context),
            "object": ObjectServer(context, settings, stores),
        }
        for kind, app in apps.items():
            self.transport.apps[node_port(kind, n)] = (kind, n, app)

    def __call__(self, method, path, headers=None, body=b"", *, env=None):
        """Send one client request below /v1."""
        target, _, query = path.partition("?")
        sent = {name.lower(): value for name, value in (headers or {}).items()}
        if method in ("PUT", "POST") and "transfer-encoding" not in sent:
            sent.setdefault("content-length", str(len(body) if isinstance(body, bytes) else body.length))
        env = {"swift.cache": self.cache, "swift_owner": True, **(env or {})}
        self.transport.requests.clear()
        self.transport.exchanges.clear()
        request = Request(method, f"/v1{target}", sent, body, query=query, env=env)
        return Answer(self.handle(request))

    def close(self):
        """Close the databases and volumes of all servers."""
        for stores in self.packed_stores.values():
            stores.close()
        for _kind, _number, app in self.transport.apps.values():
            if isinstance(app, AccountServer | ContainerServer):
                app.brokers.close()

    def open(self, path, headers=None):
        """Send a GET; return its response with the body unread."""
        env = {"swift.cache": self.cache, "swift_owner": True}
        return self.handle(Request("GET", f"/v1{path}", dict(headers or {}), env=env))

    # where things are

    def _view(self, kind, policy):
        rings = self.context.rings
        return (rings.object(self.policies.get(policy)) if kind == "object" else getattr(rings, kind)).view()

    def primaries(self, kind, account, container=None, obj=None, *, policy=0):
        """Return the node numbers of an entity's primaries, in ring order."""
        view = self._view(kind, policy)
        part = view.partition_of(self.hasher.digest(account, container, obj))
        return [int(node.device[3:]) for node in view.primaries(part)]

    def handoffs(self, account, container, obj, *, policy=0):
        """Return the node numbers of an object's handoffs, in ring order."""
        view = self._view("object", policy)
        part = view.partition_of(self.hasher.digest(account, container, obj))
        return [int(node.device[3:]) for node in view.handoffs(part)]

    def files(self, policy=0):
        """Return node number → names of its object files (or packed records) of one policy."""
        found = defaultdict(list)
        folder = f"objects-{policy}" if policy else "objects"
        for path in sorted(self.root.glob(f"node*/sdb*/{folder}/*/*/*/*")):
            if int(path.parts[-7][4:]) not in self.packed_stores:
                found[int(path.parts[-7][4:])].append(path.name)
        for number, stores in self.packed_stores.items():
            own = next(each for each in on_node(self.policies, True) if each.index == policy)
            for names in packed_names(stores.engine(own), f"sdb{number}", own).values():
                for each in names.values():
                    found[number].extend(each)
        return {number: names for number, names in found.items() if names}

    def holders(self, suffix=".data", *, policy=0):
        """Return the numbers of nodes with an object file of this suffix."""
        return sorted(n for n, names in self.files(policy).items() if any(x.endswith(suffix) for x in names))

    def asked(self, kind=None, method=None):
        """Return the numbers of nodes that got a backend request in the last client request."""
        return [
            number
            for k, number, m, _path, _headers in self.transport.requests
            if kind in (None, k) and method in (None, m)
        ]

    def round_trips(self, method):
        """Return the maximum round trips of this method with one object server in the last request."""
        return max(x.turns for kind, m, x in self.transport.exchanges if (kind, m) == ("object", method))

    def refusing(self, kind, *numbers):
        """Let these nodes refuse connections during the ``with`` block."""
        return _while_among(self.faults.refuses, kind, numbers)

    def without_footers(self, *numbers):
        """Disable the multi-phase PUT of these object servers during the ``with`` block."""
        return _while_among(self.faults.takes_no_footers, "object", numbers)

    def nodes_that_trusted_md5(self):
        """Return the object servers that accepted the sender's MD5 of some PUT."""
        return {
            exchange.number
            for kind, method, exchange in self.transport.exchanges
            if (kind, method) == ("object", "PUT") and etagtrailer.is_offered(exchange.continue_headers)
        }

    def without_md5_trust(self, *numbers):
        """Let these object servers compute every MD5 themselves during the ``with`` block."""
        return _while_among(self.faults.believes_no_md5, "object", numbers)

    @contextlib.contextmanager
    def responding(self, kind, status, *numbers):
        """Let these nodes respond to everything with a status during the ``with`` block."""
        for n in numbers:
            self.faults.answers[node_port(kind, n)] = status
        try:
            yield
        finally:
            for n in numbers:
                del self.faults.answers[node_port(kind, n)]

    @staticmethod
    def device(kind, n):
        """Return the node address and device that health records use."""
        return SimpleNamespace(key=f"10.0.0.1:{node_port(kind, n)}/sdb{n}")

    def avoid(self, kind, *numbers, slow=False):
        """Let the proxy avoid these nodes, as after a 507 or many timeouts."""
        for n in numbers:
            if slow:
                while not self.context.health.is_avoided(self.device(kind, n).key):
                    self.context.health.failed(self.device(kind, n).key, slow=True)
            else:
                self.context.health.avoid(self.device(kind, n).key)

    def avoided(self, kind):
        """Return the numbers of the nodes that the proxy avoids."""
        return {n for n in range(1, NODES + 1) if self.context.health.is_avoided(self.device(kind, n).key)}

    def clear_node_errors(self):
        """Clear all node errors of the proxy."""
        self.context.health._records.clear()

    def counts(self):
        """Return the number of requests per (kind, method)."""
        found = defaultdict(int)
        for kind, _number, method, _path, _headers in self.transport.requests:
            found[kind, method] += 1
        return dict(found)
