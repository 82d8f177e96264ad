"""The one loop that sends a request to many nodes at once.

``fan_out`` runs one green thread per attempt; each walks the shared node iterator until ``send`` gives an
answer worth counting, so that a handoff replaces a failing primary. It stops when the decider has its
quorum (plus a grace for the rest), and never waits longer than the slowest attempt's own timeouts. Avoided
nodes are asked only when there can be no quorum without them: one that hangs would cost every write its time.
Unfit for streaming bodies: those are driven in step by ``proxy.obj.copies``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from swift import green
from swift.cluster.collect import Arrivals, collect
from swift.cluster.placement import NodeIterator
from swift.cluster.quorum import WriteQuorum
from swift.cluster.transport import BackendResponse
from swift.http.headers import HeaderMap
from swift.ring.device import Node

#: Sends one attempt to a node; None means "try the next node".
Send = Callable[[Node, HeaderMap], BackendResponse | None]


def fan_out(
    attempts: Sequence[HeaderMap],
    nodes: NodeIterator,
    send: Send,
    decider: WriteQuorum,
    *,
    grace_s: float,
) -> list[BackendResponse]:
    """Send every attempt; the answers in order of arrival, without those that came too late."""
    arrivals: Arrivals[tuple[HeaderMap, BackendResponse | None, bool]] = Arrivals(len(attempts))

    def work(headers: HeaderMap) -> None:
        answer = None
        try:
            for node in nodes:
                answer = send(node, headers)
                if answer is not None:
                    answer.node, answer.attempt = node, headers
                    break
        finally:
            arrivals.put((headers, answer, nodes.asks_avoided))

    nodes.asks_avoided = False
    for headers in attempts:
        green.spawn_detached(work, headers)
    answers: list[BackendResponse] = []
    stranded: list[HeaderMap] = []
    for headers, answer, asked_all in collect(arrivals, decider, grace_s=grace_s):
        if answer is None:
            if not asked_all:
                stranded.append(headers)
        else:
            answers.append(answer)
            decider.add(answer.status)
        if stranded and (nodes.asks_avoided or not decider.within_reach(arrivals.waiting)):
            nodes.asks_avoided = True
            for headers in stranded:
                green.spawn_detached(work, headers)
            arrivals.waiting += len(stranded)
            stranded.clear()
    return answers
