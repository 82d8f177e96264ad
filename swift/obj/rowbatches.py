"""Rows on their way to one replica of a container are sent together, if they wait for a request before them.

Containers do not wait for each other, because one of them may be busy. Container servers that do not know
the request (OpenStack Swift) get each row by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from swift import green
from swift.base.clock import Clock
from swift.base.errors import InvalidValue
from swift.cluster.direct import DirectClient
from swift.cluster.transport import BackendResponse, MalformedResponse, NodeAddress, TransportError
from swift.green import Event, spawn_detached
from swift.http.headers import HeaderMap
from swift.wire.rowbatch import BYTES_MAX, METHOD, ROWS_MAX, BatchedRow, decode_answers, encode_rows

#: Rows do not wait longer for a request before them, seconds.
PATIENCE_S = 0.1
#: For so long a server that did not know the request is not sent it again, seconds.
RETRY_S = 600.0
#: Statuses of servers that do not know the request, and of those that did not like this one.
_UNKNOWN, _REFUSED = frozenset((405, 501)), frozenset((400, 413))
#: Servers that are remembered.
_SERVERS_MAX = 10_000
#: Characters of the joined transaction ids: servers refuse longer headers, and the batch with them.
_TRANS_IDS_MAX = 4096
#: Headers that say something about the sender, not about the row.
_OF_THE_SENDER = frozenset(("user-agent", "referer", "x-trans-id"))


@dataclass(slots=True, eq=False)
class _Waiting:
    """A row that waits for its answer."""

    row: BatchedRow
    done: Event = field(default_factory=Event)
    is_sent: bool = False
    reply: BackendResponse | None = None
    error: Exception | None = None


@dataclass(slots=True, eq=False)
class _Place:
    """The rows on their way to one replica of a container."""

    server: NodeAddress
    #: ``/device/partition/account/container``, quoted.
    container: str
    gathering: list[_Waiting] = field(default_factory=list)
    #: Stands for the green thread that sends what is gathered.
    sender: object | None = None
    #: When its last request began.
    began_s: float = 0.0


class RowBatches:
    """Sends rows of the requests of this process; for green threads."""

    def __init__(self, direct: DirectClient, clock: Clock):
        self._direct = direct
        self._clock = clock
        #: Only those that rows are on their way to.
        self._places: dict[tuple[NodeAddress, str], _Place] = {}
        #: Server → until when it gets each row by itself.
        self._single_until: dict[NodeAddress, float] = {}

    def request_alone(
        self, server: NodeAddress, container: str, method: str, name: str, headers: HeaderMap
    ) -> BackendResponse:
        """Send a row by itself, behind no other; raises ``TransportError``."""
        return self._direct.request(server, method, f"{container}/{name}", headers)

    def request(
        self, server: NodeAddress, container: str, method: str, name: str, headers: HeaderMap
    ) -> BackendResponse:
        """Send the row of an object to ``/device/partition/account/container``; raises ``TransportError``.

        Both are quoted.
        """
        now_s = self._clock.monotonic()
        if now_s < self._single_until.get(server, 0.0):
            return self.request_alone(server, container, method, name, headers)
        place = self._places.get((server, container))
        if place is None:
            place = self._places[server, container] = _Place(server, container)
        waiting = _Waiting(BatchedRow(method, name, headers))
        place.gathering.append(waiting)
        if place.sender is None or now_s - place.began_s > PATIENCE_S:
            self._start_sender(place)
        while not waiting.is_sent:
            sender = place.sender
            if waiting.done.wait(PATIENCE_S):
                break
            if not waiting.is_sent and place.sender is sender:
                # A request before it takes long, and no later row came.
                self._start_sender(place)
        waiting.done.wait()
        if waiting.reply is None:
            raise waiting.error or TransportError("the row was not sent")
        return waiting.reply

    def _start_sender(self, place: _Place) -> None:
        """Have a new green thread send what is gathered; the one before ends after its request."""
        place.sender, place.began_s = object(), self._clock.monotonic()
        # It begins when all that were woken together have come here.
        spawn_detached(self._send_gathered, place, place.sender)

    def _send_gathered(self, place: _Place, sender: object) -> None:
        """Send what is gathered until nothing is, or another green thread does so."""
        try:
            while place.sender is sender and place.gathering:
                some, place.gathering = place.gathering[:ROWS_MAX], place.gathering[ROWS_MAX:]
                place.began_s = self._clock.monotonic()
                for each in some:
                    each.is_sent = True
                try:
                    self._send(place, some)
                except Exception as error:  # noqa: BLE001 - every caller gets it
                    for each in some:
                        each.error = error
                finally:
                    for each in some:
                        each.done.set()
        finally:
            if place.sender is sender:
                del self._places[place.server, place.container]
                for each in place.gathering:
                    each.done.set()

    def _send(self, place: _Place, some: list[_Waiting]) -> None:
        if len(some) > 1 and self._clock.monotonic() >= self._single_until.get(place.server, 0.0):
            reply = self._send_batch(place, some)
            if reply is None:
                return
            if reply.status in _UNKNOWN:
                self._note_unknown(place.server)
            elif reply.status not in _REFUSED:
                for each in some:
                    each.reply = reply
                return
        if len(some) == 1:
            self._send_single(place, some[0])
        else:
            green.gather([partial(self._send_single, place, each) for each in some])

    def _note_unknown(self, server: NodeAddress) -> None:
        """Send a server each row by itself for a while."""
        if len(self._single_until) >= _SERVERS_MAX:
            self._single_until.clear()
        self._single_until[server] = self._clock.monotonic() + RETRY_S

    def _send_batch(self, place: _Place, some: list[_Waiting]) -> BackendResponse | None:
        """Send rows together; return the response unless it answers each of them."""
        body = encode_rows([_without_sender(each.row) for each in some])
        if len(body) > BYTES_MAX:
            return BackendResponse(413)
        first = some[0].row.headers
        headers = {
            "user-agent": first.get("user-agent", "-"),
            "x-trans-id": ",".join(each.row.headers.get("x-trans-id", "-") for each in some)[:_TRANS_IDS_MAX],
        }
        reply = self._direct.request(place.server, METHOD, place.container, headers, body)
        if reply.status != 200:
            return reply
        try:
            answers = decode_answers(reply.body, len(some))
        except InvalidValue as error:
            raise MalformedResponse(str(error))
        for each, answer in zip(some, answers, strict=True):
            each.reply = BackendResponse(answer.status, answer.headers)
        return None

    def _send_single(self, place: _Place, waiting: _Waiting) -> None:
        try:
            row = waiting.row
            path = f"{place.container}/{row.name}"
            waiting.reply = self._direct.request(place.server, row.method, path, row.headers)
        except Exception as error:  # noqa: BLE001 - its caller alone gets it
            waiting.error = error

    def __repr__(self) -> str:
        return f"<RowBatches for {len(self._places)} containers>"


def _without_sender(row: BatchedRow) -> BatchedRow:
    headers = {name: value for name, value in row.headers.items() if name not in _OF_THE_SENDER}
    return row._replace(headers=headers)
