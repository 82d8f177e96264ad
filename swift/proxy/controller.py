"""What the account, container and object controllers of the proxy share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from swift.base.entity import EntityPath
from swift.base.truth import is_true
from swift.cluster.fanout import Answer, fan_out
from swift.cluster.placement import NodeIterator
from swift.cluster.quorum import WriteQuorum
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response
from swift.proxy.backend import Backends, backend_headers
from swift.proxy.context import ProxyContext
from swift.proxy.reading import ReadPlan, SourceSearch, is_newest, source_response
from swift.proxy.results import best_response, has_timestamp, with_clock_refusal
from swift.ring.device import Node
from swift.ring.view import RingView


class Controller:
    """Reads from the nodes of a ring and writes to them."""

    kind = ""

    def __init__(self, context: ProxyContext):
        self.context = context
        self.backends = Backends(context)

    # reading

    def read(self, request: Request, path: EntityPath, view: RingView, part: int, query: str) -> Response:
        """GET or HEAD of an account or container from the first good node."""
        plan = ReadPlan(
            request.method,
            path,
            part,
            backend_headers(self.context, request, transfer=True),
            query,
            is_newest(request.headers),
            _replication_network(request),
        )
        planner = self.context.planner()
        nodes = planner.for_read(view, part, self.kind)
        search = SourceSearch(self.backends, planner.settings, plan, nodes)
        found = search.find()
        return search.failure() if found is None else source_response(found[0])

    # writing

    def write(
        self,
        view: RingView,
        part: int,
        method: str,
        path: EntityPath,
        attempts: list[HeaderMap],
        *,
        nodes: Callable[[], NodeIterator] | None = None,
        body: bytes = b"",
        quorum: int | None = None,
        overrides: Mapping[int, int] | None = None,
        request: Request,
    ) -> Response:
        """Send one attempt per primary (handoffs replace failing ones) and agree on an answer.

        ``nodes`` makes the iterator over others to begin with, where write affinity says so.
        """
        answers, need = self.write_answers(
            view, part, method, path, attempts, nodes=nodes, body=body, quorum=quorum, request=request
        )
        return best_response(answers, len(attempts), need, overrides)

    def write_answers(
        self,
        view: RingView,
        part: int,
        method: str,
        path: EntityPath,
        attempts: list[HeaderMap],
        *,
        nodes: Callable[[], NodeIterator] | None = None,
        body: bytes = b"",
        quorum: int | None = None,
        request: Request,
    ) -> tuple[list[Answer], int]:
        """Like ``write``, but the answers themselves and the quorum they need.

        ``attempts`` get a newer timestamp when nodes know a newer state (``proxy.restamp``).
        """
        settings = self.context.settings
        need = self.context.write_quorum(len(attempts)) if quorum is None else quorum
        use_replication = _replication_network(request)
        restamper = self.context.restamper(request)
        found = self._nodes_for(view, part, nodes)

        def send(node: Node, headers: HeaderMap) -> Answer | None:
            answer = self.backends.small(
                node, part, method, path, headers, body=body, use_replication=use_replication, nodes=found
            )
            if (
                answer is not None
                and answer.status == 404
                and node.index is None
                and not has_timestamp(answer.headers)
            ):
                # A handoff that never heard of the entity proves nothing.
                return None
            return answer

        while True:
            decider = WriteQuorum(len(attempts), need)
            answers = fan_out(attempts, found, send, decider, grace_s=settings.post_quorum_timeout)
            if not restamper.restamp(attempts, answers):
                return with_clock_refusal(answers, need, found), need
            found = self._nodes_for(view, part, nodes)

    def _nodes_for(self, view: RingView, part: int, nodes: Callable[[], NodeIterator] | None) -> NodeIterator:
        return self.context.planner().for_read(view, part, self.kind) if nodes is None else nodes()


def _replication_network(request: Request) -> bool:
    return is_true(request.headers.get(fields.BACKEND_USE_REPLICATION_NETWORK))


def metadata_headers(headers: HeaderMap, kind: str, pass_through: frozenset[str]) -> HeaderMap:
    """The client's metadata headers of an account or container PUT or POST.

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
