"""Asking other nodes what they have: digests of many partitions at once, suffix hashes of one.

Every answer that did not come is told as a status, so that the caller decides what it means; a node that
gives none is left alone for a while, because each further question would cost a timeout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from swift.base.clock import Clock
from swift.base.pickles import PickleRefused, restricted_loads
from swift.cluster.direct import DirectClient, node_path
from swift.cluster.health import NodeHealth, replication_server
from swift.cluster.transport import BackendResponse, TransportError, replication_address
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.obj.compare import digests
from swift.obj.compare.digests import Question
from swift.policy.policy import Policy
from swift.ring.device import Node
from swift.store.layout import is_suffix
from swift.telemetry.log import Log

#: What a partner that gave no answer at all is said to have answered.
NO_ANSWER = 0
UNMOUNTED = 507
#: How long a node is remembered for not knowing digests, seconds.
PLAIN_FOR_S = 3600.0
#: Questions in which a node may tell nothing new before it is asked partition by partition.
_FRUITLESS_MAX = 1


class Partners:
    """The other nodes, as one daemon asks them."""

    def __init__(self, direct: DirectClient, *, answer_s: float, clock: Clock, log: Log):
        """``answer_s``: how long a node may take for an answer that costs it work, seconds."""
        self._direct = direct
        self._more_s = answer_s
        self._clock = clock
        self._log = log
        self._health = NodeHealth(clock)
        self._plain_until: dict[tuple[str, int], float] = {}

    def begin(self) -> None:
        """A pass begins: whoever was silent in an earlier one is asked again."""
        self._health.forget_absent()

    def is_absent(self, node: Node) -> bool:
        """Whether the node gave no answer a moment ago."""
        return self._health.is_absent(replication_server(node))

    def _ask(
        self, node: Node, policy: Policy, below: str, headers: HeaderMap, body: bytes = b""
    ) -> BackendResponse:
        """Any answer; a node that gives none is status ``NO_ANSWER``."""
        if self.is_absent(node):
            return BackendResponse(NO_ANSWER)
        sent = {
            "content-length": str(len(body)),
            "user-agent": self._direct.agent,
            fields.BACKEND_STORAGE_POLICY_INDEX: str(policy.index),
            **headers,
        }
        try:
            return self._direct.request(
                replication_address(node), "REPLICATE", below, sent, body, more_time_s=self._more_s
            )
        except TransportError as error:
            self._log.warning(f"{node.replication_key}: {error}")
            self._health.mark_absent(replication_server(node))
            return BackendResponse(NO_ANSWER)

    # --- many partitions -----------------------------------------------------------------------------

    def digests(self, node: Node, policy: Policy, asked: Question) -> tuple[int, dict[int, str]]:
        """What a node's partitions are like, as far as it says so; with its last status."""
        told: dict[int, str] = {}
        status = 200
        rest = dict(asked)
        fruitless = 0
        while rest and fruitless <= _FRUITLESS_MAX:
            if self._plain_until.get(_address(node), 0.0) > self._clock.monotonic():
                return 200, told
            portion = dict(islice(rest.items(), digests.PARTITIONS_MAX))
            status, answer = self._digests_once(node, policy, portion)
            if status != 200:
                break
            fruitless = 0 if answer else fruitless + 1
            told.update(answer)
            # Those that it could not tell in time go last.
            left = {part: index for part, index in portion.items() if part not in answer}
            rest = {part: index for part, index in rest.items() if part not in portion} | left
        return status, told

    def _digests_once(self, node: Node, policy: Policy, portion: Question) -> tuple[int, dict[int, str]]:
        path = node_path(node.device, next(iter(portion)), "")
        flag = {fields.BACKEND_PARTITION_DIGESTS: "true", "content-type": "application/json"}
        reply = self._ask(node, policy, path, flag, digests.encode_question(portion))
        if reply.status != 200:
            return reply.status, {}
        if fields.BACKEND_PARTITION_DIGESTS not in reply.headers:
            self._plain_until[_address(node)] = self._clock.monotonic() + PLAIN_FOR_S
            return 200, {}
        try:
            answer = digests.decode_answer(reply.body)
        except digests.BadQuestion as error:
            self._log.warning(f"{node.replication_key} told no digests: {error}")
            return 200, {}
        return 200, {part: text for part, text in answer.items() if part in portion}

    # --- one partition -------------------------------------------------------------------------------

    def hashes(self, node: Node, policy: Policy, part: int) -> tuple[int, dict[str, object]]:
        """The suffix hashes of a node's partition, with the status of the answer; none unless that is 200."""
        reply = self._ask(node, policy, node_path(node.device, part, ""), {})
        if reply.status != 200:
            return reply.status, {}
        try:
            found = restricted_loads(reply.body)
        except PickleRefused:
            found = None
        if not isinstance(found, dict):
            self._log.warning(f"{node.replication_key} told no hashes of partition {part}")
            return NO_ANSWER, {}
        suffixes = {name: value for name, value in found.items() if isinstance(name, str) and is_suffix(name)}
        return 200, suffixes

    def invalidate(
        self, node: Node, policy: Policy, part: int, suffixes: list[str], *, durable: bool
    ) -> bool:
        """Tell a node that suffixes were brought; whether it took note.

        With ``durable`` it is asked to make them durable before it answers. Servers of the peer cannot do
        that; their word is taken as it is.
        """
        headers = {fields.BACKEND_MAKE_DURABLE: "true"} if durable else {}
        return all(
            self._ask(node, policy, node_path(node.device, part, f"/{'-'.join(some)}"), headers).is_success
            for some in _portions(suffixes)
        )

    def __repr__(self) -> str:
        return f"<Partners of {self._direct!r}>"


def _address(node: Node) -> tuple[str, int]:
    return node.replication_ip, node.replication_port


def _portions(suffixes: list[str]) -> Iterator[list[str]]:
    """As many as a request line takes."""
    for start in range(0, len(suffixes), 1000):
        yield suffixes[start : start + 1000]


def differing(mine: Mapping[str, object], theirs: Mapping[str, object]) -> list[str]:
    """The suffixes of replicated objects that a node lacks or has otherwise."""
    return sorted(name for name, value in mine.items() if theirs.get(name) != value or value is None)


def differing_archives(
    mine: Mapping[str, object], own: int, theirs: Mapping[str, object], other: int
) -> list[str]:
    """The same of erasure coded ones: my archives of index ``own`` beside a node's of index ``other``."""

    def of(value: object, index: int) -> tuple[object, object]:
        return (value.get(None), value.get(index)) if isinstance(value, Mapping) else (None, None)

    return sorted(name for name, value in mine.items() if of(value, own) != of(theirs.get(name), other))
