"""Compare event loops, and two checkouts, in one run: ``python -m tools.bench.loops --help``.

Each candidate is a cluster of its own on the same machine: four nodes with a device each, replicated three
times, as ``swift-aio`` makes them. The clusters run together and are measured in turns, so that a change of
the machine meets all of them. Figures are medians of the rounds.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parents[2]
#: Measures timers under load inside a loop: the worst delays of 10 ms timers among busy green threads.
TIMERS = """
import statistics, time
from swift import green
late = []
def tick():
    for _ in range(200):
        begun = time.monotonic()
        green.sleep(0.01)
        late.append(time.monotonic() - begun - 0.01)
def work():
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        sum(range(500))
        green.sleep(0)
begun = time.process_time()
green.gather([tick] * 500 + [work] * 4)
late.sort()
print(late[len(late) // 2] * 1e3, late[int(len(late) * 0.99)] * 1e3, time.process_time() - begun)
"""


class Candidate(NamedTuple):
    """A checkout and the event loop that its processes use."""

    name: str
    tree: Path
    loop: str
    port: int


def main() -> int:
    """Measure; print a table, and JSON with ``--json``."""
    parser = argparse.ArgumentParser(description=__doc__, epilog="example: ... epoll eventlet --old ../old")
    parser.add_argument("loops", nargs="+", help="event loops of this checkout")
    parser.add_argument("--old", type=Path, help="a second checkout, with an environment in .venv")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each measurement (default: 5)")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of one load (default: 4)")
    parser.add_argument(
        "--idle", type=int, default=10000, help="idle connections, 0 for none (default: 10000)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, args.idle + 4096), hard))
    candidates = [Candidate(loop, HERE, loop, 18000 + 100 * n) for n, loop in enumerate(args.loops)]
    if args.old:
        candidates.append(Candidate("old", args.old.resolve(), "", 18000 + 100 * len(candidates)))
    root = Path(tempfile.mkdtemp(prefix="loops-"))
    try:
        for candidate in candidates:
            command(candidate, root, "start", *ports_of(candidate))
            command(candidate, root, "stop")
            allow_connections(root / candidate.name / "etc" / "proxy-server.conf", args.idle + 1024)
            command(candidate, root, "start")
        found = measure(candidates, root, args)
    finally:
        for candidate in candidates:
            command(candidate, root, "stop")
        shutil.rmtree(root)
    show(found, [candidate.name for candidate in candidates], as_json=args.json)
    return 0


def ports_of(candidate: Candidate) -> list[str]:
    """Return options with the ports of a candidate."""
    port = candidate.port
    return ["--key", "testing", f"--port={port}", f"--base-port={port + 10}", f"--cache-port={port + 1}"]


def allow_connections(conf: Path, count: int) -> None:
    """Let the proxy accept ``count`` connections."""
    text = conf.read_text()
    assert "[DEFAULT]" in text
    conf.write_text(text.replace("[DEFAULT]", f"[DEFAULT]\nmax_clients = {count}", 1))


def environment(candidate: Candidate) -> dict[str, str]:
    """Return the environment of a candidate's processes."""
    return {**os.environ, "SWIFT_EVENT_LOOP": candidate.loop}


def command(candidate: Candidate, root: Path, verb: str, *options: str) -> None:
    """Run ``swift-aio`` of a candidate."""
    line = [str(candidate.tree / "bin" / "swift-aio"), verb, str(root / candidate.name), *options]
    subprocess.run(
        line, env=environment(candidate), cwd=candidate.tree, check=True, stdout=subprocess.DEVNULL
    )


def measure(
    candidates: list[Candidate], root: Path, args: argparse.Namespace
) -> dict[str, dict[str, list[float]]]:
    """Return the figures of all rounds: row, candidate, figures."""
    found: dict[str, dict[str, list[float]]] = {}

    def note(row: str, candidate: Candidate, figure: float) -> None:
        found.setdefault(row, {}).setdefault(candidate.name, []).append(figure)
        print(f"{row}: {candidate.name} {figure:.4g}", file=sys.stderr, flush=True)

    tokens = {candidate: token_of(candidate) for candidate in candidates}
    for candidate in candidates:
        fill(candidate, tokens[candidate])
    for number in range(args.rounds):
        for candidate in candidates if number % 2 == 0 else reversed(candidates):
            token = tokens[candidate]
            for row, method, size in LOADS:
                pids = processes_of(root / candidate.name)
                used = sum(map(cpu_of, pids))
                rate = load(candidate, token, method, size, args.seconds)
                used = sum(map(cpu_of, pids)) - used
                note(f"{row}, 1/s", candidate, rate)
                note(f"{row}, CPU ms", candidate, 1e3 * used / (rate * args.seconds))
            middle, high, cpu = timers(candidate)
            note("timers of 10 ms, late by, ms", candidate, middle)
            note("timers, 99 % late by at most, ms", candidate, high)
            note("timers, CPU s", candidate, cpu)
    for candidate in candidates if args.idle else ():
        held, cpu = idle(candidate, root, args.idle)
        note("idle connection, KiB", candidate, held)
        note(f"{args.idle} idle connections, CPU s in 10 s", candidate, cpu)
    return found


def connection(candidate: Candidate) -> http.client.HTTPConnection:
    """Return a connection to the candidate's proxy."""
    return http.client.HTTPConnection("127.0.0.1", candidate.port, timeout=60)


def token_of(candidate: Candidate) -> str:
    """Log in and return the token."""
    asked = connection(candidate)
    asked.request("GET", "/auth/v1.0", headers={"X-Auth-User": "test:tester", "X-Auth-Key": "testing"})
    return asked.getresponse().headers["X-Auth-Token"]


def fill(candidate: Candidate, token: str) -> None:
    """Store the object that the GETs read."""
    asked, headers = connection(candidate), {"X-Auth-Token": token}
    bodies = {"": b"", "/big": bytes(100 << 20), **{f"/k{n}": b"x" * 1024 for n in range(200)}}
    for path, body in bodies.items():
        asked.request("PUT", f"/v1/AUTH_test/c{path}", body, headers)
        response = asked.getresponse()
        response.read()
        assert response.status in (201, 202), response.status


def load(candidate: Candidate, token: str, method: str, size: int, seconds: float) -> float:
    """Return the requests per second of several connections that send one request after the other."""
    line = [sys.executable, "-c", LOAD, str(candidate.port), token, method, str(size), str(seconds)]
    many = 1 if size > 1 << 20 else 4
    children = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for _ in range(many)]
    return sum(float(child.communicate()[0]) for child in children)


#: Row, method and size of the loads.
LOADS = (("GET 1 KiB", "GET", 1024), ("PUT 1 KiB", "PUT", 1024), ("GET 100 MiB", "GET", 100 << 20))
#: One client with raw sockets, so that the client costs little.
LOAD = """
import os, socket, sys, time
port, token, method, size, seconds = sys.argv[1:]
size, seconds = int(size), float(seconds)
sock = socket.create_connection(("127.0.0.1", int(port)))
sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
body = b"x" * size if method == "PUT" else b""
buffer = bytearray(1 << 20)
def ask(path):
    head = f"{method} /v1/AUTH_test/c/{path} HTTP/1.1\\r\\nHost: h\\r\\nX-Auth-Token: {token}\\r\\n"
    head += f"Content-Length: {len(body)}\\r\\n\\r\\n"
    sock.sendall(head.encode() + body)
    data = b""
    while b"\\r\\n\\r\\n" not in data:
        more = sock.recv(65536)
        assert more
        data += more
    head, _, rest = data.partition(b"\\r\\n\\r\\n")
    assert head.split()[1][:1] == b"2", head
    left = int(head.lower().partition(b"content-length: ")[2].split()[0]) - len(rest)
    while left > 0:
        got = sock.recv_into(buffer, min(left, len(buffer)))
        assert got
        left -= got
begun, number = time.monotonic(), 0
while time.monotonic() - begun < seconds:
    if size > 1 << 20:
        ask("big")
    elif method == "GET":
        ask(f"k{number % 200}")
    else:
        ask(f"p{os.getpid()}-{number}")
    number += 1
print(number / (time.monotonic() - begun))
"""


def timers(candidate: Candidate) -> tuple[float, float, float]:
    """Return how late timers are, ms: the median and the 99th percentile; and the CPU seconds."""
    python = candidate.tree / ".venv" / "bin" / "python"
    line = [str(python), "-c", TIMERS]
    done = subprocess.run(
        line, env=environment(candidate), cwd=candidate.tree, capture_output=True, text=True, check=True
    )
    middle, high, cpu = (float(word) for word in done.stdout.split())
    return middle, high, cpu


def idle(candidate: Candidate, root: Path, count: int) -> tuple[float, float]:
    """Return the KiB per idle connection of the proxy, and the CPU seconds of 10 s with all of them."""
    pids = processes_of(root / candidate.name, "proxy")
    before = sum(memory_of(pid) for pid in pids)
    held = [connection(candidate) for _ in range(count)]
    try:
        for each in held:
            each.connect()
            each.request("GET", "/healthcheck")
            each.getresponse().read()
        after = sum(memory_of(pid) for pid in pids)
        used = sum(cpu_of(pid) for pid in pids)
        threading.Event().wait(10)
        return (after - before) / count, sum(cpu_of(pid) for pid in pids) - used
    finally:
        for each in held:
            each.close()


def processes_of(root: Path, word: str = "") -> list[int]:
    """Return the process ids of a cluster, of those with a word in their command line."""
    found = []
    for path in Path("/proc").iterdir():
        try:
            words = (path / "cmdline").read_text().split("\0") if path.name.isdigit() else []
        except OSError:
            continue
        if any(str(root) in each for each in words) and any(word in each for each in words):
            found.append(int(path.name))
    return found


def memory_of(pid: int) -> float:
    """Return the private memory of a process, KiB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(float(line.split()[1]) for line in text.splitlines() if line.startswith("Private_"))


def cpu_of(pid: int) -> float:
    """Return the CPU time of a process, seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def show(found: dict[str, dict[str, list[float]]], names: list[str], *, as_json: bool) -> None:
    """Print the medians."""
    medians = {row: {name: statistics.median(by[name]) for name in names} for row, by in found.items()}
    if as_json:
        print(json.dumps({"medians": medians, "rounds": found}, indent=1))
        return
    print(f"{'':40}" + "".join(f"{name:>12}" for name in names))
    for row, by in medians.items():
        print(f"{row:40}" + "".join(f"{by[name]:12.4g}" for name in names))


if __name__ == "__main__":
    raise SystemExit(main())
