"""Footprint of an idle node: memory of all its processes, time to the first response, installed size.

    python -m tools.bench.footprint --peer /var/tmp/compare/peer

One node with three devices, replicas on all of them, one worker a server, all daemons and 1,000 containers.
Each side's daemons are processes of their own, as units of systemd start them; ours are also measured as
``swift-aio`` runs them, in one process. Memory is the proportional set size (a page that n processes share
counts 1/n in each) after the daemons have settled; memcached, the same on all sides, is left out. Time is
from the start of the first server until all listen and a token was given, and until a container was made.

``--minio PROGRAM`` measures a MinIO with the same number of devices and buckets; boto3 makes them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from swift.aio.plan import ClusterPlan, new_plan
from swift.base.documents import JsonObject
from swift.config.declared import daemons
from swift.runtime.workers import die_with_parent
from tools.bench.contestants import Contestant, family_of, peer_program
from tools.bench.options import bare_parser
from tools.bench.peer import OwnEtc

SIZES: dict[str, object] = {
    "nodes": 1,
    "disks": 3,
    "replicas": 3,
    "ec": "",
    "proxy_workers": 1,
    "storage_workers": 1,
}
CONTAINERS = 1000
_PSS = re.compile(r"^(Pss|Private_Dirty|Private_Clean):\s+(\d+) kB", re.M)

Say = Callable[[str], None]


class NodeContestant(Contestant):
    """A contestant whose processes are listed one by one."""

    def memory(self) -> dict[str, tuple[float, float, int]]:
        """Return name → (PSS, memory of its own in MiB, processes) of each server and daemon."""
        found = {}
        for name, child in (*self._children.items(), *self._daemons.items()):
            if name == "memcached" or "cache" in name:
                continue
            family = [values for pid in family_of(child.pid) if (values := memory_of(pid))]
            found[name] = (
                sum(pss for pss, _own in family),
                sum(own for _pss, own in family),
                len(family),
            )
        return found


def memory_of(pid: int) -> tuple[float, float] | None:
    """Return PSS and private memory of a process in MiB; None when it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return None
    values = {name: int(kib) / 1024 for name, kib in _PSS.findall(text)}
    return values.get("Pss", 0.0), values.get("Private_Dirty", 0.0) + values.get("Private_Clean", 0.0)


def commands_of(plan: ClusterPlan, make: Callable[[str, str], list[str]]) -> dict[str, list[str]]:
    """Return a command for each daemon of the node."""
    return {
        f"{daemon.server_type}-daemon-{name}": make(
            name, str(plan.etc / f"{daemon.server_type}-server" / "1.conf")
        )
        for name, daemon in daemons().items()
    }


def contestants(root: Path, ours: Path, peer: Path | None) -> Iterator[NodeContestant]:
    """Yield the sides, each with directories and ports of its own; ``ours`` and ``peer`` are environments."""
    bin_ = ours / "bin"

    def plan_of(name: str, base: int) -> ClusterPlan:
        shutil.rmtree(root / name, ignore_errors=True)
        return new_plan(
            root / name, proxy_port=base + 80, base_port=base + 200, cache_port=base + 311, **SIZES
        )

    def our_program(kind: str, conf: str) -> list[str]:
        return [str(bin_ / f"swift-{kind}-server"), conf, "-v"]

    yield NodeContestant(
        "ours",
        plan_of("ours", 18000),
        our_program,
        lambda plan: commands_of(plan, lambda name, conf: [str(bin_ / f"swift-{name}"), conf, "-v"]),
    )
    yield NodeContestant(
        "ours, daemons in one process",
        plan_of("joined", 18000),
        our_program,
        lambda plan: {each.name: [str(bin_ / "python"), *each.args] for each in plan.daemons()},
    )
    if peer is not None:
        commands = peer / "bin"
        plan = plan_of("theirs", 18000)
        etc = OwnEtc(plan.root, plan.etc)
        names = [name for name in daemons() if (commands / f"swift-{name}").exists()]
        yield NodeContestant(
            "theirs",
            plan,
            peer_program(plan, commands),
            lambda plan: {
                name: command
                for name, command in commands_of(
                    plan, lambda name, conf: etc.command(commands / f"swift-{name}", conf, "-v")
                ).items()
                if name.partition("-daemon-")[2] in names
            },
        )


def first_response(contestant: Contestant) -> tuple[float, float]:
    """Start the servers; return the seconds to the health check and to the first container."""
    contestant.prepare()
    begun = time.monotonic()
    contestant.start_servers()
    healthy_s = time.monotonic() - begun
    contestant.request("PUT", "/v1/AUTH_test/first")
    return healthy_s, time.monotonic() - begun


def measure(contestant: NodeContestant, settle_s: float, say: Say) -> JsonObject:
    """Start a side, fill it, let it settle; return its figures."""
    with contextlib.ExitStack() as stack:
        stack.callback(contestant.stop)
        say(f"{contestant.name}: starting")
        healthy_s, first_s = first_response(contestant)
        for number in range(CONTAINERS):
            contestant.request("PUT", f"/v1/AUTH_test/c{number}")
        contestant.start_daemons()
        say(f"{contestant.name}: at rest for {settle_s:.0f} s")
        time.sleep(settle_s)
        memory = contestant.memory()
    return {
        "memory": {name: {"pss": pss, "own": own, "processes": n} for name, (pss, own, n) in memory.items()},
        "pss": sum(pss for pss, _own, _n in memory.values()),
        "processes": sum(n for _pss, _own, n in memory.values()),
        "healthy_s": healthy_s,
        "first_s": first_s,
    }


def measure_minio(root: Path, program: Path, settle_s: float, say: Say) -> JsonObject:
    """Start a MinIO with three directories, make 1,000 buckets, let it settle; return its figures."""
    import boto3
    from botocore.config import Config
    from botocore.exceptions import ClientError

    shutil.rmtree(root / "minio", ignore_errors=True)
    folders = [root / "minio" / f"d{number}" for number in (1, 2, 3)]
    for folder in folders:
        folder.mkdir(parents=True)
    environment = {
        **os.environ,
        "MINIO_ROOT_USER": "benchuser",
        "MINIO_ROOT_PASSWORD": "benchsecret",
        "MINIO_BROWSER": "off",
        "MINIO_CI_CD": "on",
    }
    say("minio: starting")
    begun = time.monotonic()
    with open(root / "minio.log", "wb") as log:
        command = [str(program), "server", "--quiet", "--address", "127.0.0.1:18080", *map(str, folders)]
        child = subprocess.Popen(command, env=environment, stdout=log, stderr=log, preexec_fn=die_with_parent)
    try:
        client = boto3.client(
            "s3",
            region_name="us-east-1",
            endpoint_url="http://127.0.0.1:18080",
            aws_access_key_id="benchuser",
            aws_secret_access_key="benchsecret",
            config=Config(retries={"total_max_attempts": 1}),
        )
        healthy_s = first_s = 0.0
        while not first_s and time.monotonic() < begun + 60:
            # Ready is not yet initialized: it refuses the first buckets.
            with contextlib.suppress(OSError, ClientError):
                urllib.request.urlopen("http://127.0.0.1:18080/minio/health/ready", timeout=5).close()
                healthy_s = healthy_s or time.monotonic() - begun
                client.create_bucket(Bucket="first")
                first_s = time.monotonic() - begun
            time.sleep(0.02)
        for number in range(CONTAINERS):
            client.create_bucket(Bucket=f"c{number:04}")
        say(f"minio: at rest for {settle_s:.0f} s")
        time.sleep(settle_s)
        pss, own = memory_of(child.pid) or (0.0, 0.0)
    finally:
        child.kill()
        child.wait()
    return {
        "memory": {"minio": {"pss": pss, "own": own, "processes": 1}},
        "pss": pss,
        "processes": 1,
        "healthy_s": healthy_s,
        "first_s": first_s,
    }


def size_of(folder: Path) -> float:
    """Return the MiB that a folder takes on its filesystem."""
    blocks = sum(
        os.lstat(os.path.join(where, name)).st_blocks
        for where, _dirs, names in os.walk(folder)
        for name in names
    )
    return blocks * 512 / (1 << 20)


def table(figures: JsonObject) -> str:
    """Return the figures as a table of Markdown."""
    lines = ["| | processes | PSS, MiB | servers listen, s | first PUT, s |", "|---|---:|---:|---:|---:|"]
    for name, found in figures.items():
        lines.append(
            f"| {name} | {found['processes']} | {found['pss']:.0f} | {found['healthy_s']:.1f} "
            f"| {found['first_s']:.1f} |"
        )
    return "\n".join(lines)


def details(found: JsonObject) -> str:
    """Return the processes of one side, the largest first."""
    rows = sorted(found["memory"].items(), key=lambda item: -item[1]["pss"])
    return "\n".join(
        f"  {name:45} {each['pss']:6.1f} MiB PSS, {each['own']:6.1f} own, {each['processes']} processes"
        for name, each in rows
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Measure all sides, print the table, write the figures."""
    parser = bare_parser("footprint", __doc__)
    parser.add_argument(
        "--root", type=Path, default=Path("/var/tmp/swift-footprint"), help="where all is put"
    )
    parser.add_argument(
        "--ours", type=Path, default=Path(sys.prefix), help="environment with the wheel (this one)"
    )
    parser.add_argument("--peer", type=Path, help="environment with the peer; left out when absent")
    parser.add_argument("--minio", type=Path, help="the program minio; left out when absent")
    parser.add_argument("--settle", type=float, default=120.0, help="seconds before memory is read")
    parser.add_argument("--only", default="", help="only sides whose name contains this text")
    parser.add_argument("--json", type=Path, default=Path("footprint.json"), help="write the figures here")
    args: argparse.Namespace = parser.parse_args(argv)

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    args.root.mkdir(parents=True, exist_ok=True)
    figures: JsonObject = {}
    for contestant in contestants(args.root, args.ours, args.peer):
        if args.only in contestant.name:
            figures[contestant.name] = measure(contestant, args.settle, say)
            say(details(figures[contestant.name]))
    if args.minio is not None:
        figures["minio"] = measure_minio(args.root, args.minio, args.settle, say)
    print(table(figures))
    for name, folder in (("ours", args.ours), ("theirs", args.peer)):
        if folder is not None:
            print(f"{name}: environment {size_of(folder):.0f} MiB")
    args.json.write_text(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
