"""swift-dispersion-report: look for every copy of what swift-dispersion-populate made, on its own node.

spec: cli-and-config.md §11
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from swift import green
from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.cli.dispersion_populate import DispersionClient
from swift.cluster.direct import DirectClient
from swift.cluster.rings import Rings
from swift.cluster.transport import TransportError
from swift.compose import connections_to_nodes
from swift.config.commandline import CommandLine, reports_errors
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.operations import dispersion
from swift.operations.dispersion import DispersionSettings
from swift.policy.policy import Policy
from swift.ring.device import Node, address
from swift.ring.ring import Ring
from swift.telemetry.telemetry import Telemetry


@dataclass
class Findings:
    """Counts for one kind of entity."""

    noun: str
    queried: int = 0
    found: int = 0
    expected: int = 0
    overlapping: int = 0
    retries: int = 0
    seconds: float = 0.0
    partitions: set[int] = field(default_factory=set)
    #: Copies missing → partitions of which so many are missing.
    missing: Counter[int] = field(default_factory=Counter)
    #: Copies missing → the fewest copies that one of these partitions still has.
    left: dict[int, int] = field(default_factory=dict)

    def add(self, here: int, expected: int) -> None:
        """Count an entity of which so many copies were found."""
        self.queried += 1
        self.found += here
        self.expected += expected
        if here < expected:
            copies = expected - here
            self.missing[copies] += 1
            self.left[copies] = min(here, self.left.get(copies, here))

    @property
    def percent(self) -> float:
        """Copies found, of all."""
        return 100.0 * self.found / self.expected if self.expected else 0.0

    def as_json(self) -> dict[str, object]:
        """Return the report for programs."""
        return {
            "retries": self.retries,
            "overlapping": self.overlapping,
            "pct_found": self.percent,
            "copies_found": self.found,
            "copies_expected": self.expected,
            **{f"missing_{copies}": count for copies, count in sorted(self.missing.items())},
        }

    def lines(self, partition_count: int) -> list[str]:
        """Return the report for people."""
        elapsed = f"{self.seconds:.0f}s" if self.seconds < 60 else f"{self.seconds / 60:.0f}m"
        out = [
            f"Queried {self.queried} {self.noun}s for dispersion reporting, {elapsed}, {self.retries} retries"
        ]
        if self.overlapping:
            out.append(f"There were {self.overlapping} overlapping partitions")
        out += [self._missing_line(copies, count) for copies, count in sorted(self.missing.items())]
        out.append(f"{self.percent:.2f}% of {self.noun} copies found ({self.found} of {self.expected})")
        share = 100.0 * len(self.partitions) / partition_count
        out.append(f"Sample represents {share:.2f}% of the {self.noun} partition space")
        return out

    def _missing_line(self, copies: int, count: int) -> str:
        mark = {0: "!!! ", 1: "! "}.get(self.left[copies], "")
        verb, noun = ("was", "partition") if count == 1 else ("were", "partitions")
        return f"{mark}There {verb} {count} {noun} missing {copies} {'copy' if copies == 1 else 'copies'}."


class DispersionReporter:
    """Asks every primary of an entity whether it has its copy."""

    def __init__(self, settings: DispersionSettings, *, debug: bool, partitions: bool):
        transport = connections_to_nodes({"swift_dir": settings.swift_dir}, Telemetry())
        self._client = DirectClient(transport, "dispersion-report", settings)
        self._retries = settings.retries
        self._places = green.Semaphore(settings.concurrency)
        self._debug = debug
        self._partitions = partitions

    def check_copies(
        self, noun: str, ring: Ring, hasher: PathHasher, paths: Sequence[EntityPath], headers: HeaderMap
    ) -> Findings:
        """Look for all copies of all entities."""
        begin_s = time.monotonic()
        found = Findings(noun)

        def one(path: EntityPath) -> None:
            part, nodes = ring.nodes(hasher.digest(*path))
            if part in found.partitions:
                found.overlapping += 1
            found.partitions.add(part)
            here = sum(
                green.gather([partial(self._has_copy, node, part, path, headers, found) for node in nodes])
            )
            found.add(here, len(nodes))

        green.gather([partial(one, path) for path in paths])
        found.seconds = time.monotonic() - begin_s
        return found

    def _has_copy(self, node: Node, part: int, path: EntityPath, headers: HeaderMap, found: Findings) -> bool:
        problem = ""
        target = f"/{node.device}/{part}{path.quoted}"
        for number in range(self._retries + 1):
            if number:
                found.retries += 1
                green.sleep(min(0.1 * 2**number, 5.0))
            with self._places:
                try:
                    reply = self._client.request(node, "HEAD", target, dict(headers))
                except TransportError as error:
                    problem = str(error)
                    continue
            if reply.is_success:
                return True
            problem = f"status {reply.status}"
            if reply.status in (404, 507):
                break
        where = f"{address(node.ip, node.port)}/{node.device}"
        if problem != "status 404":
            print(f"ERROR: {where}: {problem}", file=sys.stderr)
        elif self._debug:
            print(f"{where}: 404 for {path}", file=sys.stderr)
        if self._partitions:
            print(f"{where} partition {part} lacks {path}", file=sys.stderr)
        return False


def run(args: argparse.Namespace) -> None:
    """Look and report. Raises ``SwiftError`` and OSError."""
    settings = dispersion.read_conf(args.config)
    cluster, policy = dispersion.find_policy(settings, args.policy_name)
    as_json = args.dump_json or settings.dump_json
    if not as_json:
        print(f"Using storage policy: {policy.name} ", flush=True)
    client = DispersionClient(
        dispersion.log_in(settings, insecure=args.insecure), settings, insecure=args.insecure
    )
    rings = Rings(settings.swift_dir, cluster.policies)
    surveyor = DispersionReporter(settings, debug=args.debug, partitions=args.partitions)
    hasher, reports = cluster.config.hasher, {}
    for noun, is_wanted in (
        ("container", settings.container_report and not args.object_only),
        ("object", settings.object_report and not args.container_only),
    ):
        if not is_wanted:
            continue
        paths = _paths(noun, client, policy)
        if not paths:
            print(f"No {noun}s to query. Has swift-dispersion-populate been run?", file=sys.stderr)
            continue
        ring = rings.container if noun == "container" else rings.object(policy)
        headers = {} if noun == "container" else {fields.BACKEND_STORAGE_POLICY_INDEX: str(policy.index)}
        found = surveyor.check_copies(noun, ring, hasher, paths, headers)
        reports[noun] = found.as_json()
        if not as_json:
            print("\n".join(found.lines(ring.view().partition_count)), flush=True)
    if as_json:
        print(json.dumps(reports))


def _paths(noun: str, client: DispersionClient, policy: Policy) -> list[EntityPath]:
    """Return the paths that dispersion-populate made."""
    account = client.account
    if noun == "container":
        prefix = f"dispersion_{policy.index}_"
        return [EntityPath(account, name) for name in client.names() if name.startswith(prefix)]
    container = f"dispersion_objects_{policy.index}"
    if container not in client.names():
        return []
    return [EntityPath(account, container, name) for name in client.names(container)]


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-dispersion-report",
        description="Look for every copy of what swift-dispersion-populate made, on its own node.",
        epilog="example: swift-dispersion-report -j -P gold",
    )
    dispersion.add_arguments(parser)
    add = parser.add_argument
    add("-j", "--dump-json", action="store_true", help="report as JSON (also --format json)")
    add("-d", "--debug", action="store_true", help="print every 404 to standard error")
    add("-p", "--partitions", action="store_true", help="print what is missing to standard error")
    parser.add_format()
    return parser


@reports_errors("swift-dispersion-report")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    args = make_parser().parse_args(argv)
    args.dump_json = args.dump_json or args.format == "json"
    run(args)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
