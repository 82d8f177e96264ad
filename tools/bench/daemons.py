"""The cost of daemons in an idle cluster and beside a mixed load of small requests; ours and the peer's.

Both clusters get the same containers. At rest nothing asks them for anything while their daemons run; CPU is
counted over all processes. Then clients send a mix of small requests over the containers, in turn with the
daemons stopped and running, and the share of the throughput that the daemons take is shown.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import random
import statistics
import threading
import time
from collections.abc import Callable, Sequence

from swift.base.documents import JsonObject
from tools.bench.contestants import Contestant

ACCOUNT = "/v1/AUTH_test"
#: Containers at rest, and those of them that the load uses.
AT_REST, USED = 1000, 200
CLIENTS = 6
#: How long daemons run before they are measured: they have looked at everything by then.
SETTLE_S = 150.0
REST_S = 60.0

Say = Callable[[str], None]


class MixedClient(threading.Thread):
    """A client that sends PUT, GET, HEAD, DELETE and listings of small objects until ``end`` (monotonic)."""

    def __init__(self, contestant: Contestant, number: int, end: float):
        super().__init__(daemon=True)
        self._contestant = contestant
        self._chance = random.Random(number)
        self._number = number
        self._end = end
        self._names: list[str] = []
        self.good = self.bad = 0

    def run(self) -> None:
        """Send requests one after the other."""
        connection = http.client.HTTPConnection(self._contestant.host, timeout=60)
        headers = {"X-Auth-Token": self._contestant.token}
        while time.monotonic() < self._end:
            method, path, body = self._next()
            try:
                connection.request(method, ACCOUNT + path, body=body, headers=headers)
                answer = connection.getresponse()
                answer.read()
                self.good += answer.status < 500
                self.bad += answer.status >= 500
            except (OSError, http.client.HTTPException):
                connection.close()
                self.bad += 1
        connection.close()

    def _next(self) -> tuple[str, str, bytes | None]:
        draw = self._chance.random()
        container = f"/c{self._chance.randrange(USED)}"
        if draw < 0.4 or not self._names:
            self._names.append(f"{container}/o{self._number}-{len(self._names)}")
            return "PUT", self._names[-1], b"x" * self._chance.choice((10, 1000, 5000))
        if draw < 0.7:
            return "GET", self._chance.choice(self._names), None
        if draw < 0.8:
            return "HEAD", self._chance.choice(self._names), None
        if draw < 0.9:
            return "DELETE", self._names.pop(self._chance.randrange(len(self._names))), None
        return "GET", container, None


def requests_per_second(contestant: Contestant, seconds: float) -> float:
    """Return the requests per second of the mixed load."""
    end = time.monotonic() + seconds
    clients = [MixedClient(contestant, number, end) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return sum(client.good for client in clients) / seconds


def cpu_of(contestant: Contestant) -> float:
    """Return the CPU seconds of all processes so far."""
    return sum(seconds for seconds, _peak in contestant.usage().values())


def compare(args: argparse.Namespace, contestants: Sequence[Contestant], say: Say) -> int:
    """Measure, print the tables, write the figures."""
    figures: dict[str, dict[str, object]] = {
        c.name: {"idle": 0.0, "alone": [], "beside": []} for c in contestants
    }
    with contextlib.ExitStack() as stack:
        for contestant in contestants:
            stack.callback(contestant.stop)
            say(f"starting {contestant.name} and making {AT_REST} containers")
            contestant.start()
            for number in range(AT_REST):
                contestant.request("PUT", f"{ACCOUNT}/c{number}")
        for contestant in contestants:
            figures[contestant.name]["idle"] = _idle(contestant, say)
        for _ in range(args.rounds):
            for contestant in contestants:
                _round(contestant, args.seconds, figures[contestant.name], say)
    print(table(figures))
    args.json.write_text(json.dumps(figures, indent=1))
    return 0


def _idle(contestant: Contestant, say: Say) -> float:
    contestant.start_daemons()
    say(f"{contestant.name}: at rest for {SETTLE_S + REST_S:.0f} s")
    time.sleep(SETTLE_S)
    before = cpu_of(contestant)
    time.sleep(REST_S)
    share = 100 * (cpu_of(contestant) - before) / REST_S
    contestant.stop_daemons()
    say(f"{contestant.name}: {share:.1f} % of a core at rest")
    return share


def _round(contestant: Contestant, seconds: float, found: JsonObject, say: Say) -> None:
    alone = requests_per_second(contestant, seconds)
    contestant.start_daemons()
    # The first passes look at everything, as after every start.
    requests_per_second(contestant, 60.0)
    beside = requests_per_second(contestant, seconds)
    contestant.stop_daemons()
    found["alone"].append(alone)
    found["beside"].append(beside)
    say(f"{contestant.name}: {alone:.0f} answers/s without, {beside:.0f} beside its daemons")


def table(figures: dict[str, JsonObject]) -> str:
    """Return the comparison as Markdown."""
    lines = [
        "| cluster | CPU at rest, % of a core | answers/s alone | beside daemons | taken by daemons |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, found in figures.items():
        alone, beside = statistics.median(found["alone"]), statistics.median(found["beside"])
        taken = f"{100 * (1 - beside / alone):.0f} %" if alone else "-"
        lines.append(f"| {name} | {found['idle']:.1f} | {alone:.0f} | {beside:.0f} | {taken} |")
    return "\n".join(lines)
