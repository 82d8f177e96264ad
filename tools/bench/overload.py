"""A real cluster under more load than its devices can serve, with and without admission control.

    python -m tools.bench.overload --root /var/tmp/swift-overload --json overload.json --plot overload.svg

Each node has one device, an XFS in an image on a loop device, which a cgroup limits to so many bytes a
second; every object is on one of them. Three clients ask for objects at random moments, whatever happens, one
of them with a reservation; who has not got everything after a while gives up, and what was sent is lost. The
page cache is dropped all the time. What ``swift-plan simulate --overload`` says of the same is printed and
plotted beside it. It needs root, XFS tools and cgroups, and says what is missing.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import platform
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from swift.aio.cgroups import check_cgroups, drop_caches, file_device_number, read_count
from swift.aio.plan import ClusterPlan, new_plan
from swift.aio.ports import PORTS_PER_NODE
from swift.aio.supervisor import Supervisor
from swift.aio.temporary import running_cluster
from swift.aio.xfs import check_xfs, exit_on_sigterm
from swift.base.errors import ConfigError, SwiftError
from swift.load.endpoint import LoadEndpoint, log_in
from swift.plan import overload as simulator
from swift.plan.errors import PlanError
from swift.plan.plots import plot_lines
from swift.plan.report import format_table
from tools.bench.options import bare_parser

MB = 1_000_000
#: Who asks besides the reservation, which is of the first one's account.
USERS = {"AUTH_a": ("test:tester", "testing"), "AUTH_b": ("test2:tester2", "testing2")}
CONTAINER = "overload"
#: Each account has as much as its devices deliver in so long, so that nothing is read twice within a while.
STORED_S = 12.0
DROP_EVERY_S = 2.0
READ_BYTES = 64 << 10
#: Devices that read nothing for so long have nothing left to do for clients that gave up.
REST_S = 3.0
REST_WITHIN_S = 300.0


@dataclass
class Count:
    """Results of one client's requests."""

    whole: int = 0
    refused: int = 0
    gave_up: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class OverloadRun:
    """One load on a running cluster."""

    plan: ClusterPlan
    setting: simulator.OverloadSetting
    endpoints: dict[str, LoadEndpoint]
    names: Mapping[str, Iterator[str]]
    ticket: str

    def run(self, load: int, *, is_admitting: bool) -> simulator.OverloadOutcome:
        """Send ``load`` percent of the devices' capacity."""
        numbers, capacity = self.setting.numbers, self.setting.capacity
        size, seconds = numbers["size_mb"] * MB, numbers["seconds"]
        mine = min(numbers["reserved"] * capacity, load / 100 * capacity)
        rates = {simulator.RESERVED: mine}
        rates |= {
            who: share * (load / 100 * capacity - mine) for who, share in simulator.OTHER_CLIENTS.items()
        }
        counts = {who: Count() for who in rates}
        counted_from = time.monotonic() + seconds / 6
        until = counted_from + seconds
        threads = [
            threading.Thread(target=self._client, args=(who, rate / size, counts[who], counted_from, until))
            for who, rate in rates.items()
            if rate > 0
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            drop_caches()
            time.sleep(DROP_EVERY_S)
        failures = sum((count.failed for count in counts.values()), Counter())
        if failures:
            print(f"load {load} %: {', '.join(map(str, failures.items()))}", file=sys.stderr)
        came = {who: count.whole * size / seconds for who, count in counts.items()}
        reserved = counts[simulator.RESERVED].latencies
        p99_s = sorted(reserved)[min(len(reserved) - 1, int(0.99 * len(reserved)))] if reserved else 0.0
        return simulator.OverloadOutcome(
            load,
            is_admitting,
            sum(came.values()),
            came[simulator.RESERVED],
            p99_s,
            sum(count.refused for count in counts.values()),
            sum(count.gave_up for count in counts.values()),
        )

    def _client(self, who: str, rate: float, count: Count, counted_from: float, until: float) -> None:
        """Send requests at random times, each in its own thread."""
        rng, asking = random.Random(f"{self.setting.seed} {who}"), []
        at = time.monotonic()
        while (at := at + rng.expovariate(rate)) < until:
            time.sleep(max(0.0, at - time.monotonic()))
            asking.append(
                threading.Thread(target=self._request, args=(who, count, counted_from, until), daemon=True)
            )
            asking[-1].start()
            asking = [thread for thread in asking if thread.is_alive()]
        for thread in asking:
            thread.join(2 * self.setting.numbers["patience_s"])

    def _request(self, who: str, count: Count, counted_from: float, until: float) -> None:
        patience_s = self.setting.numbers["patience_s"]
        owner = "AUTH_a" if who == simulator.RESERVED else who
        endpoint = self.endpoints[owner]
        headers = {"X-Auth-Token": endpoint.token}
        if who == simulator.RESERVED and self.ticket:
            headers["X-Reservation"] = self.ticket
        began = time.monotonic()
        link = http.client.HTTPConnection(self.plan.ip, self.plan.proxy_port, timeout=patience_s)
        try:
            link.request("GET", f"{endpoint.root}/{CONTAINER}/{next(self.names[owner])}", headers=headers)
            answer = link.getresponse()
            while answer.status == 200 and answer.read(READ_BYTES):
                if time.monotonic() - began > patience_s:
                    raise TimeoutError
            ended = time.monotonic()
            if answer.status == 503:
                count.refused += began >= counted_from
            elif answer.status != 200:
                count.failed[str(answer.status)] += 1
            elif counted_from <= ended < until:
                count.whole += 1
                count.latencies.append(ended - began)
        except TimeoutError:
            count.gave_up += began >= counted_from
        except (OSError, http.client.HTTPException) as error:
            count.failed[type(error).__name__] += 1
        finally:
            link.close()


def plan_for(root: Path, port: int, setting: simulator.OverloadSetting) -> ClusterPlan:
    """Return the plan of a cluster of nodes with one device each and one replica."""
    stored = STORED_S * setting.capacity * len(USERS) / setting.numbers["devices"]
    return new_plan(
        root / "cluster",
        proxy_port=port,
        cache_port=port + 1,
        base_port=port + PORTS_PER_NODE,
        nodes=int(setting.numbers["devices"]),
        replicas=1,
        part_power=8,
        proxy_workers=1,
        xfs=True,
        # Objects are not spread evenly.
        xfs_bytes=int(max(512 * MB, 2.5 * stored)),
    )


def with_admission(conf: str, setting: simulator.OverloadSetting) -> str:
    """Return the proxy's configuration with the filter; raises ``ConfigError``."""
    if " tempauth " not in conf:
        raise ConfigError("the pipeline of the cluster has no tempauth")
    numbers = setting.numbers
    return (
        conf.replace(" tempauth ", " tempauth admission ", 1)
        + "\n[filter:admission]\nuse = egg:swift#admission\nticket_key = bench\n"
        + f"capacity_bytes_per_second = {int(numbers['configured'] * setting.capacity)}\n"
        + f"burst_seconds = {numbers['burst_s']:g}\n"
    )


def _ask(
    plan: ClusterPlan, endpoint: LoadEndpoint, method: str, path: str, body: bytes = b"", wanted: int = 201
) -> bytes:
    """Send a request that must succeed; raises ``ConfigError``."""
    link = http.client.HTTPConnection(plan.ip, plan.proxy_port, timeout=60)
    try:
        link.request(method, endpoint.root + path, body, {"X-Auth-Token": endpoint.token})
        answer = link.getresponse()
        said = answer.read()
    finally:
        link.close()
    if answer.status not in (wanted, 202):
        raise ConfigError(f"{method} {path} was answered {answer.status}: {said[:200]!r}")
    return said


def _store(plan: ClusterPlan, endpoint: LoadEndpoint, setting: simulator.OverloadSetting) -> list[str]:
    """Fill a container; return the names of the objects."""
    size = int(setting.numbers["size_mb"] * MB)
    body = random.Random(1).randbytes(size)
    names = [f"o{number:05}" for number in range(max(8, int(STORED_S * setting.capacity / size)))]
    _ask(plan, endpoint, "PUT", f"/{CONTAINER}")
    for name in names:
        _ask(plan, endpoint, "PUT", f"/{CONTAINER}/{name}", body)
    random.Random(2).shuffle(names)
    return names


def _logged_in(plan: ClusterPlan) -> dict[str, LoadEndpoint]:
    return {who: log_in(plan.auth_url, *user) for who, user in USERS.items()}


def measure(root: Path, port: int, setting: simulator.OverloadSetting) -> Iterator[simulator.OverloadOutcome]:
    """Measure all loads without admission, then with it; raises ``ConfigError``."""
    plan = plan_for(root, port, setting)
    rate = int(setting.numbers["rate_mb"] * MB)
    with running_cluster(plan, limited=plan.device_paths(), bytes_per_s=rate) as supervisor:
        for node in plan.node_numbers():
            supervisor.kill(f"daemons-{node}")
        endpoints = _logged_in(plan)
        names = {who: itertools.cycle(_store(plan, each, setting)) for who, each in endpoints.items()}
        devices = [file_device_number(path) for path in plan.device_paths()]
        for load in setting.loads:
            await_idle_devices(devices)
            yield OverloadRun(plan, setting, endpoints, names, "").run(load, is_admitting=False)
        _admit(plan, supervisor, setting)
        endpoints = _logged_in(plan)
        ticket = _reserve(plan, endpoints["AUTH_a"], setting)
        for load in setting.loads:
            await_idle_devices(devices)
            yield OverloadRun(plan, setting, endpoints, names, ticket).run(load, is_admitting=True)


def await_idle_devices(devices: Sequence[str]) -> None:
    """Wait until the devices have served the previous load; raises ``ConfigError`` after a timeout."""
    deadline, before = time.monotonic() + REST_WITHIN_S, -1
    while (now := sum(map(read_count, devices))) != before:
        if time.monotonic() > deadline:
            raise ConfigError(f"devices still read {REST_WITHIN_S:g} s after the load ended")
        before = now
        time.sleep(REST_S)


def _admit(plan: ClusterPlan, supervisor: Supervisor, setting: simulator.OverloadSetting) -> None:
    conf = plan.etc / "proxy-server.conf"
    conf.write_text(with_admission(conf.read_text(), setting))
    supervisor.kill("proxy")
    supervisor.start_again(["proxy"])


def _reserve(plan: ClusterPlan, endpoint: LoadEndpoint, setting: simulator.OverloadSetting) -> str:
    """Reserve for the whole run; return the ticket, empty without a reservation."""
    wanted = int(setting.numbers["reserved"] * setting.capacity)
    if not wanted:
        return ""
    seconds = int(2 * len(setting.loads) * (setting.numbers["seconds"] + 60))
    wish = f"?reserve&direction=read&duration={seconds}&bytes_per_second={wanted}"
    return str(json.loads(_ask(plan, endpoint, "POST", wish))["ticket"])


def report(found: Sequence[simulator.OverloadOutcome], simulated: Sequence[simulator.OverloadOutcome]) -> str:
    """Return measured and simulated figures, and their deviation."""
    beside = {(each.load, each.is_admitting): each for each in simulated}
    rows = [
        ["load", "admission", "goodput", "simulated", "off", "reserved", "simulated", "99th", "simulated"]
    ]
    for each in found:
        theirs = beside[each.load, each.is_admitting]
        off = f"{100 * (theirs.goodput / each.goodput - 1):+.0f} %" if each.goodput else ""
        rates = [f"{value / MB:.1f}" for value in (each.goodput, theirs.goodput)]
        kept = [f"{value / MB:.1f}" for value in (each.reserved, theirs.reserved)]
        late = [f"{value:.2f} s" for value in (each.reserved_p99_s, theirs.reserved_p99_s)]
        rows.append([f"{each.load} %", "yes" if each.is_admitting else "no", *rates, off, *kept, *late])
    return format_table(rows) + "\n\ngoodput and reserved in MB/s"


def _lines(
    found: Sequence[simulator.OverloadOutcome], capacity: float
) -> dict[str, list[tuple[float, float]]]:
    lines: dict[str, list[tuple[float, float]]] = {}
    for each in found:
        how = "with admission" if each.is_admitting else "without"
        lines.setdefault(f"goodput, {how}", []).append((each.load, 100 * each.goodput / capacity))
        lines.setdefault(f"reservation, {how}", []).append((each.load, 100 * each.reserved / capacity))
    return lines


def parse(argv: Sequence[str] | None) -> tuple[simulator.OverloadSetting, argparse.Namespace]:
    """Parse the command line."""
    parser = bare_parser("overload", __doc__)
    parser.add_argument("--root", type=Path, default=Path("/var/tmp/swift-overload"), help="where to work")
    parser.add_argument("--loads", default="50,90,110,150", help="%% of what the devices deliver")
    parser.add_argument("--devices", type=int, default=4, help="devices, each of a node (4)")
    parser.add_argument("--rate", type=float, default=10.0, help="what a device delivers, MB/s (10)")
    parser.add_argument("--size", type=float, default=1.0, help="size of an object, MB (1)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each load (60)")
    parser.add_argument("--patience", type=float, default=4.0, help="until a client gives up, seconds (4)")
    parser.add_argument("--reserved", type=float, default=0.3, help="of what the devices deliver (0.3)")
    parser.add_argument(
        "--configured", type=float, default=0.8, help="capacity, as a part of the devices' (0.8)"
    )
    parser.add_argument("--port", type=int, default=27000, help="the first of some hundred ports")
    parser.add_argument("--json", type=Path, help="where results go")
    parser.add_argument("--plot", type=Path, help="where a picture goes, e.g. overload.svg")
    found = parser.parse_args(argv)
    words = {
        "loads": found.loads,
        "devices": found.devices,
        "rate_mb": found.rate,
        "size_mb": found.size,
        "seconds": found.seconds,
        "patience_s": found.patience,
        "reserved": found.reserved,
        "configured": found.configured,
        # Nothing here bounds a connection; a device reads ahead so much of each.
        "connection_mb": 1000,
        "piece_kb": 128,
    }
    try:
        return simulator.parse_setting([f"{name}={value}" for name, value in words.items()], 1), found
    except PlanError as error:
        parser.error(str(error))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and report; return 1 when this machine cannot run it."""
    setting, found = parse(argv)
    results: list[simulator.OverloadOutcome] = []
    try:
        check_cgroups()
        check_xfs()
        found.root.mkdir(parents=True, exist_ok=True)
        with exit_on_sigterm():
            for result in measure(found.root, found.port, setting):
                results.append(result)
                how = "with admission" if result.is_admitting else "without"
                print(f"load {result.load} %, {how}: {result.goodput / MB:.1f} MB/s", flush=True)
    except (SwiftError, OSError) as error:
        print(f"overload: {error}", file=sys.stderr)
        return 1
    simulated = simulator.simulate_overload(setting)
    print(report(results, simulated))
    if found.json:
        figures = {"measured": [asdict(r) for r in results], "simulated": [asdict(s) for s in simulated]}
        machine = {"machine": platform.platform(), "setting": asdict(setting)}
        found.json.write_text(json.dumps({**machine, **figures}, indent=1) + "\n")
    if found.plot:
        plot_lines(
            _lines(results, setting.capacity),
            str(found.plot),
            beside=_lines(simulated, setting.capacity),
            title=f"Devices of {setting.capacity / MB:g} MB/s in all; dashed: simulated",
            across="load, % of what the devices deliver",
            up="% of what the devices deliver",
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
