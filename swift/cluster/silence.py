"""Who was asked and answers nobody: servers that are stopped, cut off, or wait for a disk that hangs.

Such a server still takes connections, so it would cost every request a timeout until enough of them have
failed. It is *silent* while nothing that it was asked for ``SILENCE_S`` has been answered, whoever asked; a
busy one answers something now and then and is not silent. Whoever keeps this memory asks others meanwhile,
and the silent one with *probes* for which no client waits. The first is due before the silence begins: who is
only long about the one thing that it was asked answers that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from swift.base.clock import Clock

#: Who answers nobody for so long is silent; a disk that seeks is slower than one second now and then.
SILENCE_S = 2.0
#: Who has not answered for so long is to be probed.
DOUBT_S = SILENCE_S / 2
#: Servers that are remembered at most.
SERVERS_MAX = 100_000


class Question(NamedTuple):
    """What a probe may ask again: a path of the server, and the index of the policy."""

    target: str
    policy: str


@dataclass(slots=True)
class _Unheard:
    """What a server was asked, and when, since it last answered."""

    since: float
    last: float
    probe_at: float
    question: Question | None


class Silence:
    """Remembers, in this process, who has not answered; the names of servers are the caller's."""

    def __init__(self, clock: Clock, patience_s: float):
        """No request waits longer than ``patience_s``: those given up by now prove nothing about today."""
        self._clock = clock
        self._patience_s = patience_s
        self._unheard: dict[str, _Unheard] = {}

    def asked(self, server: str, now: float, question: Question | None = None) -> None:
        """A request was sent at ``now`` of the monotonic clock."""
        unheard = self._unheard.get(server)
        if unheard is None or now - unheard.last > self._patience_s:
            if len(self._unheard) >= SERVERS_MAX:
                self._unheard.clear()
            self._unheard[server] = _Unheard(now, now, now, question)
        else:
            unheard.last = now

    def heard(self, server: str) -> None:
        """It answered something, whatever that was, or refused to."""
        self._unheard.pop(server, None)

    def is_silent(self, server: str) -> bool:
        """Whether it answers nobody."""
        unheard = self._unheard.get(server)
        return unheard is not None and self._is_quiet(unheard, self._clock.monotonic(), SILENCE_S)

    def _is_quiet(self, unheard: _Unheard, now: float, for_s: float) -> bool:
        return now - unheard.since >= for_s and now - unheard.last <= self._patience_s

    def is_due(self, server: str) -> bool:
        """Whether a server that has not answered for a while is to be probed now; the probe is a request too.

        The next is due before this one is given up, so that the silence does not end with it.
        """
        unheard, now = self._unheard.get(server), self._clock.monotonic()
        if unheard is None or not self._is_quiet(unheard, now, DOUBT_S) or now < unheard.probe_at:
            return False
        unheard.last, unheard.probe_at = now, now + self._patience_s / 2
        return True

    def question(self, server: str) -> Question | None:
        """What it was asked first since it is silent."""
        unheard = self._unheard.get(server)
        return None if unheard is None else unheard.question

    def __bool__(self) -> bool:
        """Whether anybody has not answered yet."""
        return bool(self._unheard)

    def __repr__(self) -> str:
        return f"<Silence {', '.join(filter(self.is_silent, self._unheard)) or 'of nobody'}>"
