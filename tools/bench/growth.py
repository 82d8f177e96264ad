"""A cluster is halved and doubled by its layout while clients read and write: their latency meanwhile.

    python -m tools.bench.growth --root /var/tmp/swift-growth --objects 4000 --json growth.json

Six nodes of a device each run on this machine, with all daemons. Clients write and read objects of 4 KiB at
random moments of a closed loop: before, while three nodes are drained, after that, while they come back, and
at the end. The machine does the work of all nodes, so copies that move take CPU from requests. ``--budget``
is the latency that the controller keeps to, ``--step`` the percent of copies that move at once.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import platform
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from swift.aio.make import make_cluster, remove_cluster
from swift.aio.plan import ClusterPlan, new_plan
from swift.aio.ports import PORTS_PER_NODE
from swift.aio.supervisor import Supervisor
from swift.base.errors import ConfigError
from swift.load.endpoint import LoadEndpoint, log_in
from swift.ring.builder import RingBuilder
from tools.bench.options import bare_parser

NODES, DRAINED = 6, (4, 5, 6)
RINGS = ("account", "container", "object")
CONTAINER = "growth"
SIZE = 4096
#: Seconds between two requests of a client, and until the layout must be at rest.
REST_S, WITHIN_S = 0.05, 1800.0
#: Seconds between decisions of the controller, and between passes of replicators.
INTERVAL_S = 5


@dataclass(frozen=True)
class Phase:
    """The requests of a while; latencies in milliseconds."""

    name: str
    seconds: float
    requests: int
    failed: int
    put_p50: float
    put_p99: float
    get_p50: float
    get_p99: float


class GrowthClients:
    """Threads that write and read until they are ended."""

    def __init__(self, plan: ClusterPlan, endpoint: LoadEndpoint, objects: int, count: int):
        self._plan, self._endpoint, self._objects = plan, endpoint, objects
        #: Moment of the end, method, seconds; an error has a negative time.
        self._results: list[tuple[float, str, float]] = []
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in range(count)]

    def __enter__(self) -> GrowthClients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        rng = random.Random(number)
        body = rng.randbytes(SIZE)
        while not self._ended.wait(rng.expovariate(1 / REST_S)):
            method = rng.choice(("PUT", "GET"))
            path = f"/{CONTAINER}/o{rng.randrange(self._objects)}"
            began = time.monotonic()
            try:
                send(self._plan, self._endpoint, method, path, body if method == "PUT" else b"")
            except (OSError, http.client.HTTPException, ConfigError):
                self._results.append((time.monotonic(), method, -1.0))
                continue
            ended = time.monotonic()
            self._results.append((ended, method, ended - began))

    def phase(self, name: str, began: float, ended: float) -> Phase:
        """Return the requests that ended between two moments."""
        found = [each for each in list(self._results) if began <= each[0] < ended]
        times = {
            method: sorted(1000 * took for _, of, took in found if of == method and took >= 0)
            for method in ("PUT", "GET")
        }
        failed = sum(took < 0 for _, _, took in found)
        cells = [percentile(times[method], share) for method in ("PUT", "GET") for share in (0.5, 0.99)]
        return Phase(name, ended - began, len(found), failed, *cells)


def percentile(values: Sequence[float], share: float) -> float:
    """Return a percentile of sorted values; 0 without any."""
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def send(plan: ClusterPlan, endpoint: LoadEndpoint, method: str, path: str, body: bytes = b"") -> None:
    """Send a request that must succeed; raises ``ConfigError`` and OSError."""
    link = http.client.HTTPConnection(plan.ip, plan.proxy_port, timeout=60)
    try:
        link.request(method, endpoint.root + path, body, {"X-Auth-Token": endpoint.token})
        answer = link.getresponse()
        answer.read()
    finally:
        link.close()
    if answer.status not in (200, 201, 202):
        raise ConfigError(f"{method} {path} was answered {answer.status}")


@contextlib.contextmanager
def growing_cluster(root: Path, port: int, options: str) -> Iterator[ClusterPlan]:
    """Run six nodes whose builders let partitions move at any time; raises ``ConfigError``."""
    plan = new_plan(
        root / "cluster",
        proxy_port=port,
        cache_port=port + 1,
        base_port=port + PORTS_PER_NODE,
        nodes=NODES,
        part_power=8,
        proxy_workers=1,
    )
    make_cluster(plan)
    try:
        for name in RINGS:
            path = str(plan.etc / f"{name}.builder")
            builder = RingBuilder.load(path)
            builder.min_part_hours = 0
            builder.save(path)
        for conf in plan.etc.glob("*-server/*.conf"):
            text = re.sub(r"(?m)^interval = \d+$", f"interval = {INTERVAL_S}", conf.read_text())
            conf.write_text(text.replace("[layout-controller]\n", f"[layout-controller]\n{options}"))
        supervisor = Supervisor(plan, lambda _text: None)
        supervisor.start()
        try:
            yield plan
        finally:
            supervisor.end()
    finally:
        remove_cluster(plan)


def layout(plan: ClusterPlan, *words: str) -> str:
    """Return the output of ``swift-layout``; raises ``ConfigError`` with its error."""
    command = [sys.executable, "-m", "swift.cli.layout", "-d", str(plan.etc), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigError(done.stderr.strip() or done.stdout.strip())
    return done.stdout


def change_weights(plan: ClusterPlan, weight: float) -> int:
    """Give three nodes another weight; return the copies of objects that move by it."""
    for node in DRAINED:
        for kind in RINGS:
            address = f"{plan.storage_ip}:{plan.port(kind, node)}"
            layout(plan, "weight", address, f"{weight:g}", "--rings", kind)
    layout(plan, "apply", "--force")
    return int(json.loads(layout(plan, "--format", "json", "show"))["rings"]["object"]["moves_total"])


def await_rest(plan: ClusterPlan) -> None:
    """Wait until all changes have ended; raises ``ConfigError`` after a timeout."""
    deadline = time.monotonic() + WITHIN_S
    while any(
        ring["moving"] for ring in json.loads(layout(plan, "--format", "json", "show"))["rings"].values()
    ):
        if time.monotonic() > deadline:
            raise ConfigError(f"the layout still moves after {WITHIN_S:g} s")
        time.sleep(2)


def measure(args: argparse.Namespace) -> Iterator[Phase]:
    """Yield the phases; raises ``ConfigError``."""
    options = f"step_percent = {args.step:g}\nlatency_budget = {args.budget:g}\n"
    with growing_cluster(args.root, args.port, options) as plan:
        endpoint = log_in(plan.auth_url, plan.user, plan.key)
        send(plan, endpoint, "PUT", f"/{CONTAINER}")
        body = random.Random(1).randbytes(SIZE)
        for number in range(args.objects):
            send(plan, endpoint, "PUT", f"/{CONTAINER}/o{number}", body)
        layout(plan, "init")
        with GrowthClients(plan, endpoint, args.objects, args.clients) as clients:

            def rest(name: str) -> Phase:
                began = time.monotonic()
                time.sleep(args.seconds)
                return clients.phase(name, began, time.monotonic())

            def change(name: str, weight: float) -> Phase:
                began = time.monotonic()
                moves = change_weights(plan, weight)
                await_rest(plan)
                return clients.phase(f"{name} ({moves} copies)", began, time.monotonic())

            yield rest("six nodes")
            yield change("six become three", 0.0)
            yield rest("three nodes")
            yield change("three become six", 100.0)
            yield rest("six nodes again")


def main() -> int:
    """Run the benchmark."""
    parser = bare_parser("growth", __doc__)
    parser.add_argument("--root", type=Path, default=Path("/var/tmp/swift-growth"), help="where it is put")
    parser.add_argument("--port", type=int, default=18080, help="of the proxy; the following ones as well")
    parser.add_argument("--objects", type=int, default=4000, help="of 4 KiB")
    parser.add_argument("--clients", type=int, default=4, help="threads that write and read")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the phases without a change")
    parser.add_argument("--step", type=float, default=10.0, help="percent of the copies that move at once")
    parser.add_argument("--budget", type=float, default=0.0, help="seconds of a request, for the controller")
    parser.add_argument("--json", type=Path, help="write the figures here")
    args = parser.parse_args()
    phases = []
    heads = ("seconds", "requests", "failed", "PUT p50 ms", "p99", "GET p50 ms", "p99")
    print(f"{'phase':<32}" + "".join(f"{head:>12}" for head in heads))
    try:
        for phase in measure(args):
            phases.append(phase)
            cells = (phase.seconds, phase.requests, phase.failed)
            times = (phase.put_p50, phase.put_p99, phase.get_p50, phase.get_p99)
            print(f"{phase.name:<32}" + "".join(f"{cell:>12.0f}" for cell in cells), end="")
            print("".join(f"{cell:>12.1f}" for cell in times), flush=True)
    except ConfigError as error:
        print(f"growth: {error}", file=sys.stderr)
        return 1
    if args.json:
        record = {"machine": platform.platform(), "phases": [asdict(each) for each in phases]}
        args.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
