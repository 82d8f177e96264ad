"""Changes of entities on their nodes, and the base of the account, container and object controllers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from swift.base.entity import EntityPath
from swift.base.truth import is_true
from swift.cluster.collect import fan_out
from swift.cluster.placement import NodeIterator
from swift.cluster.quorum import WriteQuorum
from swift.cluster.transport import BackendResponse, NodeRequest, replication_address
from swift.gateway.info import delete_cached_info
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response
from swift.proxy.backend import Backends, backend_headers, is_newest
from swift.proxy.context import ProxyContext
from swift.proxy.reading import ReadPlan, SourceSearch, source_response
from swift.proxy.restamp import Restamper
from swift.proxy.results import best_response, has_timestamp, with_clock_refusal
from swift.ring.device import Node
from swift.ring.view import RingView


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an entity, for every node of its partition."""

    method: str
    path: EntityPath
    view: RingView
    part: int
    #: One set of headers for each node; gets newer timestamps when nodes know a newer state.
    attempts: list[HeaderMap]
    body: bytes = b""
    #: Number of nodes that must agree; None for the quorum of writes.
    quorum: int | None = None
    #: Makes the node iterator if it differs from that of a read, because of write affinity.
    nodes: Callable[[], NodeIterator] | None = None


class Controller:
    """Reads from the nodes of a ring and writes to them."""

    kind = ""

    def __init__(self, context: ProxyContext):
        self.context = context
        self.backends = Backends(context)

    def locate(self, path: EntityPath) -> tuple[RingView, int]:
        """Return the ring and the partition of an account or container."""
        rings = self.context.rings
        view = (rings.account if path.container is None else rings.container).view()
        return view, view.partition_of(self.context.hasher.digest(path.account, path.container))

    # reading

    def read(
        self,
        request: Request,
        path: EntityPath,
        view: RingView,
        part: int,
        query: str,
        headers: HeaderMap | None = None,
    ) -> Response:
        """Read an account or container (GET or HEAD) from the first good node.

        ``headers`` replace the client's.
        """
        use_replication = _replication_network(request)
        planner = self.context.planner()
        nodes = planner.for_read(view, part, self.kind)
        settings, newest = planner.settings, is_newest(request.headers)
        plan = ReadPlan(
            request.method,
            path,
            part,
            {**backend_headers(self.context, request, transfer=True), **(headers or {})},
            query,
            newest,
            self.backends.read_timeouts(settings, newest=newest),
            use_replication,
        )
        search = SourceSearch(self.backends, settings, plan, nodes)
        found = search.find()
        return search.failure() if found is None else source_response(found[0])

    # writing

    def write_everywhere(
        self, request: Request, path: EntityPath, method: str, headers: HeaderMap, key: str
    ) -> Response:
        """Send the same change to all primaries; drop the info that is cached under ``key``."""
        view, part = self.locate(path)
        delete_cached_info(request, key)
        attempts = [headers] * len(view.primaries(part))
        response = self.write(request, Change(method, path, view, part, attempts))
        delete_cached_info(request, key)
        return response

    def write(self, request: Request, change: Change) -> Response:
        """Send one attempt per primary (handoffs replace failing ones) and agree on a response."""
        responses, need = write_to_nodes(self.context, self.backends, request, change)
        return best_response(responses, len(change.attempts), need)


def write_to_nodes(
    context: ProxyContext, backends: Backends, request: Request, change: Change
) -> tuple[list[BackendResponse], int]:
    """Send one attempt per primary; return the nodes' responses and the number of them that must agree.

    The attempts get a newer timestamp when nodes know a newer state (``proxy.restamp``).
    """
    settings, attempts = context.settings, change.attempts
    need = context.write_quorum(len(attempts)) if change.quorum is None else change.quorum
    use_replication = _replication_network(request)
    restamper: Restamper | None = None
    below = f"/{change.part}{change.path.quoted}"
    nodes = _nodes_for(context, change)

    def send(node: Node, headers: HeaderMap) -> BackendResponse | None:
        address = replication_address(node) if use_replication else node
        path = f"/{node.device}{below}"
        node_request = NodeRequest.with_length(address, change.method, path, headers, change.body, settings)
        response = backends.request(node_request, nodes)
        if (
            response is not None
            and response.status == 404
            and node.index is None
            and not has_timestamp(response.headers)
        ):
            # A handoff without the entity proves nothing.
            return None
        return response

    while True:
        decider = WriteQuorum(len(attempts), need)
        responses = fan_out(attempts, nodes, send, decider, grace_s=settings.post_quorum_timeout)
        if change.path.obj is None or 409 in [response.status for response in responses]:
            restamper = restamper or context.restamper(request)
            if restamper.restamp(attempts, responses):
                nodes = _nodes_for(context, change)
                continue
        return with_clock_refusal(responses, need, nodes), need


def _nodes_for(context: ProxyContext, change: Change) -> NodeIterator:
    if change.nodes is not None:
        return change.nodes()
    return context.planner().for_read(change.view, change.part, change.path.kind)


def _replication_network(request: Request) -> bool:
    return is_true(request.headers.get(fields.BACKEND_USE_REPLICATION_NETWORK))


def authorize(request: Request) -> Response | None:
    """Return the auth filter's denial; None when the request is authorized."""
    decide = request.env.get(environkeys.AUTHORIZE)
    return decide(request) if decide is not None else None


def metadata_headers(headers: HeaderMap, kind: str, pass_through: frozenset[str]) -> HeaderMap:
    """Return the client's metadata headers of an account or container PUT or POST.

    ``X-Remove-…`` forms become empty values; an explicit value wins over its removal.
    """
    meta, sysmeta = f"x-{kind}-meta-", f"x-{kind}-sysmeta-"
    remove = f"x-remove-{kind}-"
    chosen: HeaderMap = {}
    for name in headers:
        if name.startswith("x-remove-"):
            target = "x-" + name.removeprefix("x-remove-")
            if (name.startswith(remove) and target.startswith(meta)) or target in pass_through:
                chosen[target] = ""
    for name, value in headers.items():
        if name.startswith((meta, sysmeta)) or name in pass_through:
            chosen[name] = value
    return chosen
