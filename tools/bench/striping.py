"""The speed of clients that read objects from several devices, compared with one device.

    python -m tools.bench.striping --root /var/tmp/striping --json striping.json --plot striping.svg

For each number of devices a cluster with as many nodes is made, each with an XFS of its own in an image on a
loop device, which a cgroup limits to so many bytes a second, in both directions. One client reads and writes
one large object; before each reading the page cache is dropped, and every byte is compared. Read are a
replicated object from one node and from all, one in segments, and an erasure coded one (k+2 on k+2 devices,
where there are as many), the latter also with a device lost in the middle. With ``--peer`` the installed peer
does the same on clusters of the same plan. It needs root, XFS tools and cgroups, and says what is missing.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import itertools
import json
import platform
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import md5
from pathlib import Path
from typing import TYPE_CHECKING

from swift import DISTRIBUTION
from swift.aio.cgroups import (
    check_cgroups,
    drop_caches,
    file_device_number,
    limit_read_ahead,
    throttled_group,
)
from swift.aio.plan import ClusterPlan, new_plan
from swift.aio.ports import PORTS_PER_NODE
from swift.aio.temporary import running_cluster, set_options, set_write_pace
from swift.aio.xfs import check_xfs, exit_on_sigterm
from swift.base.errors import ConfigError, SwiftError
from swift.plan.plots import plot_lines
from tools.bench.contestants import Contestant, install_peer, peer_program
from tools.bench.options import bare_parser

if TYPE_CHECKING:
    from swift.plan.striping import Predicted

MIB = 1 << 20
PIECE = 1 << 20
#: Of an object in segments.
SEGMENT = 4 << 20
#: From so many devices on an erasure code fits on them.
CODED_FROM = 3
PARITY = 2
#: What is aimed at: times the rate of one device.
GOALS = {
    (3, "GET of replicas, striped"): 2.2,
    (4, "GET of segments"): 3.2,
    (6, "GET of archives"): 3.2,
    (6, "PUT of archives"): 2.5,
    (6, "GET of archives, one lost"): 2.5,
}


@dataclass(frozen=True)
class StripingOptions:
    """The options of a run."""

    root: Path
    devices: tuple[int, ...]
    object_bytes: int
    device_rate: int
    memory: int
    port: int
    #: Where the peer's commands are; None: it takes no part.
    peer: Path | None = None


@dataclass(frozen=True)
class MeasuredTransfer:
    """One transfer."""

    devices: int
    work: str
    seconds: float
    bytes: int
    is_peer: bool = False

    @property
    def rate(self) -> float:
        """Return bytes per second."""
        return self.bytes / self.seconds

    def times(self, device_rate: int) -> float:
        """Return the rate divided by that of one device."""
        return self.rate / device_rate


def code_for(devices: int) -> str:
    """Return the erasure code for so many devices; empty if none fits."""
    return f"{devices - PARITY}+{PARITY}" if devices >= CODED_FROM else ""


def plan_for(choices: StripingOptions, devices: int) -> ClusterPlan:
    """Return the plan of a cluster of nodes with one device each, which all store every replicated object."""
    base = choices.port
    return new_plan(
        choices.root / f"cluster-{devices}",
        proxy_port=base,
        cache_port=base + 1,
        base_port=base + PORTS_PER_NODE,
        nodes=devices,
        replicas=devices,
        ec=code_for(devices),
        part_power=4,
        proxy_workers=1,
        xfs=True,
        # Copy and archive, and what is written while another one is there.
        xfs_bytes=max(512 * MIB, 4 * choices.object_bytes),
    )


class StripingClient:
    """One client with one connection; every byte is compared by its MD5."""

    def __init__(self, plan: ClusterPlan, size: int):
        self._plan = plan
        self._size = size
        self._piece = random.Random(1).randbytes(PIECE)
        self._headers = {"X-Auth-Token": self._token()}

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._plan.ip, self._plan.proxy_port, timeout=300)

    def _token(self) -> str:
        link = self._connect()
        link.request(
            "GET", "/auth/v1.0", headers={"X-Auth-User": self._plan.user, "X-Auth-Key": self._plan.key}
        )
        answer = link.getresponse()
        answer.read()
        link.close()
        return answer.headers["X-Auth-Token"]

    def make_container(self, name: str, policy: str) -> None:
        """Create a container; raises ``ConfigError``."""
        link = self._connect()
        link.request("PUT", self._path(name), headers={**self._headers, "X-Storage-Policy": policy})
        answer = link.getresponse()
        answer.read()
        link.close()
        if answer.status not in (201, 202):
            raise ConfigError(f"container {name} was answered {answer.status}")

    def _path(self, name: str) -> str:
        return f"/v1/AUTH_{self._plan.user.partition(':')[0]}/{name}"

    def _pieces(self) -> Iterator[bytes]:
        left, number = self._size, 0
        while left:
            # Every piece begins differently, so that bytes of another place are noticed.
            piece = (number.to_bytes(8, "big") + self._piece[8:])[:left]
            yield piece
            left -= len(piece)
            number += 1

    def put(self, name: str) -> float:
        """Return the seconds of an upload; raises ``ConfigError``."""
        began = time.monotonic()
        self._send(name, self._pieces(), self._size)
        return time.monotonic() - began

    def _send(self, name: str, body: bytes | Iterator[bytes], size: int) -> None:
        link = self._connect()
        headers = {**self._headers, "Content-Length": str(size)}
        link.request("PUT", self._path(name), body, headers)
        answer = link.getresponse()
        answer.read()
        link.close()
        if answer.status != 201:
            raise ConfigError(f"the upload of {name} was answered {answer.status}")

    def put_segments(self, name: str) -> None:
        """Store the object as segments and a manifest; raises ``ConfigError``."""
        parts: list[dict[str, object]] = []
        pieces = self._pieces()
        while part := b"".join(itertools.islice(pieces, SEGMENT // PIECE)):
            path = f"{name}-{len(parts):05}"
            self._send(path, part, len(part))
            parts.append({"path": f"/{path}", "size_bytes": len(part)})
        manifest = json.dumps(parts).encode()
        self._send(f"{name}?multipart-manifest=put", manifest, len(manifest))

    def get(self, name: str, *, halfway: Lose | None = None) -> float:
        """Return the seconds of a download; raises ``ConfigError`` when a byte is wrong."""
        drop_caches()
        link = self._connect()
        began, got, found = time.monotonic(), 0, md5(usedforsecurity=False)
        link.request("GET", self._path(name), headers=self._headers)
        answer = link.getresponse()
        while data := answer.read(PIECE):
            got += len(data)
            found.update(data)
            if halfway is not None and got > self._size // 2:
                halfway()
                halfway = None
        took = time.monotonic() - began
        link.close()
        wanted = md5(usedforsecurity=False)
        for piece in self._pieces():
            wanted.update(piece)
        if answer.status != 200 or found.digest() != wanted.digest():
            raise ConfigError(f"{name} came wrong: {answer.status}, {got} of {self._size} bytes")
        return took


class Lose:
    """Kills the object server of a node, once."""

    def __init__(self, kill: Callable[[str], None], node: int):
        self._kill = kill
        self._node = node

    def __call__(self) -> None:
        self._kill(f"object-{self._node}")


def measure(choices: StripingOptions, devices: int) -> Iterator[MeasuredTransfer]:
    """Measure all transfers on so many devices."""
    size = choices.object_bytes
    plan = plan_for(choices, devices)
    with running_cluster(plan, limited=plan.device_paths(), bytes_per_s=choices.device_rate) as supervisor:
        for node in plan.node_numbers():
            # An auditor reads half of what such a device gives.
            supervisor.kill(f"daemons-{node}")
        client = StripingClient(plan, size)
        client.make_container("copies", "gold")
        yield MeasuredTransfer(devices, "PUT of replicas", client.put("copies/o"), size)
        yield MeasuredTransfer(devices, "GET of replicas, from one", client.get("copies/o"), size)
        client.put_segments("copies/segments")
        proxy_conf = plan.etc / "proxy-server.conf"
        set_options(proxy_conf, "proxy", striping_memory=choices.memory, striping_from=1 << 20)
        set_options(proxy_conf, "slo", read_ahead_bytes=choices.memory)
        supervisor.kill("proxy")
        supervisor.start_again(["proxy"])
        yield MeasuredTransfer(devices, "GET of replicas, striped", client.get("copies/o"), size)
        yield MeasuredTransfer(devices, "GET of segments", client.get("copies/segments"), size)
        if plan.ec:
            yield from _coded(client, devices, size, Lose(supervisor.kill, 1))


def _coded(
    client: StripingClient, devices: int, size: int, lose: Lose, *, is_peer: bool = False
) -> Iterator[MeasuredTransfer]:
    client.make_container("coded", "ec")
    yield MeasuredTransfer(devices, "PUT of archives", client.put("coded/o"), size, is_peer)
    yield MeasuredTransfer(devices, "GET of archives", client.get("coded/o"), size, is_peer)
    took = client.get("coded/o", halfway=lose)
    yield MeasuredTransfer(devices, "GET of archives, one lost", took, size, is_peer)


def measure_peer(choices: StripingOptions, devices: int, commands: Path) -> Iterator[MeasuredTransfer]:
    """Measure the peer's transfers; it reads a replicated object from one node."""
    size = choices.object_bytes
    plan = plan_for(choices, devices)
    peer = Contestant("theirs", plan, peer_program(plan, commands))
    with contextlib.ExitStack() as stack:
        # What the peer is shown as its /etc/swift is there too.
        stack.callback(shutil.rmtree, plan.root, ignore_errors=True)
        stack.callback(peer.stop)
        peer.prepare()
        set_write_pace(plan)
        numbers = [file_device_number(path) for path in plan.device_paths()]
        for number in numbers:
            limit_read_ahead(number)
        inside = stack.enter_context(throttled_group(f"swift-{plan.root.name}", numbers, choices.device_rate))
        stack.callback(peer.stop_servers)
        with inside():
            peer.start_servers()
        client = StripingClient(plan, size)
        client.make_container("copies", "gold")
        yield MeasuredTransfer(devices, "PUT of replicas", client.put("copies/o"), size, True)
        yield MeasuredTransfer(devices, "GET of replicas, from one", client.get("copies/o"), size, True)
        client.put_segments("copies/segments")
        yield MeasuredTransfer(devices, "GET of segments", client.get("copies/segments"), size, True)
        if plan.ec:
            yield from _coded(client, devices, size, Lose(peer.kill, 1), is_peer=True)


def _measure_all(choices: StripingOptions, devices: int) -> Iterator[MeasuredTransfer]:
    yield from measure(choices, devices)
    if choices.peer is not None:
        commands = install_peer(choices.peer, lambda text: print(text, flush=True))
        yield from measure_peer(choices, devices, commands)


def report(results: Sequence[MeasuredTransfer], predicted: Sequence[Predicted], device_rate: int) -> str:
    """Return the table of results, simulated values and goals."""
    lines = [
        "| devices | work | MB/s | times one device | simulated | off by | aimed at | peer |",
        "|---|---|---|---|---|---|---|---|",
    ]
    known = {(each.devices, each.work): each.times(device_rate) for each in predicted}
    peer = {(each.devices, each.work): each.times(device_rate) for each in results if each.is_peer}
    for result in results:
        if result.is_peer:
            continue
        place = result.devices, result.work
        # It has one way to read a replicated object.
        theirs = peer.get((place[0], place[1].replace(", striped", ", from one")))
        aimed = f"{GOALS[place]:g}" if place in GOALS else ""
        times, simulated = result.times(device_rate), known.get(place)
        beside = " | " if simulated is None else f"{simulated:.2f} | {100 * (simulated / times - 1):+.0f} %"
        rate = f"{result.rate / 1e6:.1f}"
        told = "" if theirs is None else f"{theirs:.2f}"
        lines.append(f"| {place[0]} | {place[1]} | {rate} | {times:.2f} | {beside} | {aimed} | {told} |")
    return "\n".join(lines)


def prediction(choices: StripingOptions) -> list[Predicted]:
    """Return the simulated figures of the same transfers; raises ``ConfigError`` without SimPy."""
    try:
        from swift.plan import striping as simulator
    except ModuleNotFoundError as error:
        raise ConfigError(f"a prediction needs {error.name}, which the extra {DISTRIBUTION}[plan] installs")
    words = [
        f"devices={','.join(map(str, choices.devices))}",
        f"size_mib={choices.object_bytes / MIB}",
        f"rate_mb={choices.device_rate / 1e6}",
        f"memory_mib={choices.memory / MIB}",
        f"parity={PARITY}",
    ]
    return [each for setting in simulator.parse_settings(words) for each in simulator.predict(setting)]


def _times(
    results: Sequence[MeasuredTransfer | Predicted], device_rate: int
) -> dict[str, list[tuple[float, float]]]:
    """Return work → devices and multiples of one device's rate."""
    found: dict[str, list[tuple[float, float]]] = {}
    for each in results:
        is_peer = isinstance(each, MeasuredTransfer) and each.is_peer
        work = f"{each.work} (peer)" if is_peer else each.work
        found.setdefault(work, []).append((each.devices, each.times(device_rate)))
    return found


def plot(
    results: Sequence[MeasuredTransfer], predicted: Sequence[Predicted], device_rate: int, path: Path
) -> None:
    """Plot rates over devices, measured and (dashed) simulated; ``ConfigError`` without matplotlib."""
    try:
        plot_lines(
            _times(results, device_rate),
            str(path),
            beside=_times(predicted, device_rate),
            title=f"One client, devices of {device_rate / 1e6:g} MB/s; dashed: simulated",
            across="devices",
            up="times the rate of one device",
        )
    except ModuleNotFoundError:
        raise ConfigError(f"a plot needs matplotlib, which the extra {DISTRIBUTION}[load] installs")


def parse(argv: Sequence[str] | None) -> tuple[StripingOptions, argparse.Namespace]:
    """Parse the command line."""
    parser = bare_parser("striping", __doc__)
    parser.add_argument(
        "--root", type=Path, default=Path("/var/tmp/swift-striping"), help="a folder to work in"
    )
    parser.add_argument("--devices", default="1,2,3,4,6,8", help="numbers of devices, with commas")
    parser.add_argument("--mib", type=int, default=1024, help="size of the object")
    parser.add_argument("--rate", type=float, default=20.0, help="what a device does, in MB/s")
    parser.add_argument("--memory-mib", type=int, default=64, help="what a download may hold in the proxy")
    parser.add_argument(
        "--peer", type=Path, help="environment with the peer, made when absent; it is measured too"
    )
    parser.add_argument("--port", type=int, default=28000, help="the first of some hundred ports")
    parser.add_argument(
        "--no-simulation", action="store_true", help="do not set what swift-plan simulates beside it"
    )
    parser.add_argument("--json", type=Path, help="where results go")
    parser.add_argument("--plot", type=Path, help="where a picture goes, e.g. striping.svg")
    found = parser.parse_args(argv)
    words = found.devices.split(",")
    if not all(word.isascii() and word.isdigit() and 1 <= int(word) <= 16 for word in words):
        parser.error(f"--devices: numbers from 1 to 16 with commas, not {found.devices!r}")
    if min(found.mib, found.memory_mib) < 1 or found.rate <= 0:
        parser.error("sizes and rates must be more than 0")
    choices = StripingOptions(
        found.root,
        tuple(int(word) for word in words),
        found.mib * MIB,
        int(found.rate * 1e6),
        found.memory_mib * MIB,
        found.port,
        found.peer,
    )
    return choices, found


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and report; return 1 when this machine cannot run it."""
    choices, found = parse(argv)
    results: list[MeasuredTransfer] = []
    predicted: list[Predicted] = []
    try:
        if not found.no_simulation:
            predicted = prediction(choices)
        check_cgroups()
        check_xfs()
        choices.root.mkdir(parents=True, exist_ok=True)
        with exit_on_sigterm():
            for devices in choices.devices:
                for result in _measure_all(choices, devices):
                    results.append(result)
                    who = "peer, " if result.is_peer else ""
                    print(f"{who}{devices} devices, {result.work}: {result.rate / 1e6:.1f} MB/s", flush=True)
        if found.plot:
            plot(results, predicted, choices.device_rate, found.plot)
    except (SwiftError, OSError) as error:
        print(f"striping: {error}", file=sys.stderr)
        return 1
    print(report(results, predicted, choices.device_rate))
    if found.json:
        machine = {"machine": platform.platform(), "device_rate": choices.device_rate}
        figures = {"results": [asdict(r) for r in results], "simulated": [asdict(p) for p in predicted]}
        found.json.write_text(json.dumps({**machine, **figures}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
