"""swift-dispersion-populate: make containers and objects in a part of all partitions, for the report.

spec: cli-and-config.md §11
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count as numbers
from urllib.parse import quote

from swift import green
from swift.base.errors import SwiftError
from swift.base.hashing import PathHasher
from swift.cluster.rings import Rings
from swift.cluster.transport import TransportError
from swift.config.commandline import CommandLine, reports_errors
from swift.operations import dispersion
from swift.operations.dispersion import DispersionSettings, Login
from swift.policy.policy import Policy
from swift.ring.ring import Ring

PROGRESS_EVERY_S = 5.0


class NotPopulated(SwiftError):
    """A request failed for good."""


class DispersionClient:
    """Requests to the proxy; a connection for each."""

    def __init__(self, login: Login, settings: DispersionSettings, *, insecure: bool):
        self._login = login
        self._retries = settings.retries
        self._insecure = insecure
        #: Number of retries.
        self.retried = 0

    @property
    def account(self) -> str:
        """The account's name."""
        return self._login.account

    def put(self, path: str, headers: dict[str, str], body: bytes = b"") -> None:
        """Make something; raises ``NotPopulated``."""
        self._request("PUT", path, headers, body)

    def names(self, container: str = "") -> Iterator[str]:
        """Yield the names of a listing page by page; raises ``NotPopulated``."""
        marker = ""
        while True:
            path = f"{container and '/'}{quote(container)}?format=json&marker={quote(marker, safe='')}"
            found = _parse_names(self._request("GET", path, {}, b""))
            if found is None or marker in found:
                raise NotPopulated(f"GET {self._login.path}{path}: the answer is no listing")
            if not found:
                return
            yield from found
            marker = found[-1]

    def _request(self, method: str, path: str, headers: dict[str, str], body: bytes) -> bytes:
        problem = ""
        for number in range(self._retries + 1):
            if number:
                self.retried += 1
                green.sleep(min(2.0**number, 30.0))
            try:
                status, content = self._request_once(method, path, headers, body)
            except (OSError, TransportError) as error:
                problem = str(error)
                continue
            if status // 100 == 2:
                return content
            problem = f"status {status}"
            if status // 100 == 4 and status not in (404, 408, 429):
                break
        raise NotPopulated(f"{method} {self._login.path}{path}: {problem}")

    def _request_once(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, bytes]:
        login = self._login
        sent = {"x-auth-token": login.token, **headers}
        with dispersion.connect(
            login.host, login.port, is_tls=login.is_tls, insecure=self._insecure
        ) as connection:
            target = f"{login.path}{path}"
            reply = connection.request(method, target, sent, body, bytes_max=dispersion.RESPONSE_BYTES_MAX)
        return reply.status, reply.body


def _parse_names(body: bytes) -> list[str] | None:
    """Return the names of a page of a listing; None when it is none."""
    try:
        names = [row["name"] for row in json.loads(body or b"[]")]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return names if all(isinstance(name, str) and name for name in names) else None


def names_for_partitions(
    ring: Ring,
    digest: Callable[[str], bytes],
    prefix: str,
    coverage: float,
    *,
    start: int = 0,
    taken: Sequence[str] = (),
) -> Iterator[str]:
    """Yield one name for each partition, until ``coverage`` percent of all have one.

    Partitions of the names ``taken`` are passed over and count beyond that.
    """
    view = ring.view()
    used = {view.partition_of(digest(name)) for name in taken}
    left = min(int(coverage / 100.0 * view.partition_count), view.partition_count - len(used))
    for number in numbers(start):
        if left <= 0:
            return
        name = f"{prefix}{number}"
        part = view.partition_of(digest(name))
        if part not in used:
            used.add(part)
            left -= 1
            yield name


def populate(
    noun: str, names: Sequence[str], put: Callable[[str], None], client: DispersionClient, at_once: int
) -> None:
    """Make the entities and print the progress. Raises ``NotPopulated``."""
    begin_s, retried = time.monotonic(), client.retried
    places = green.Semaphore(at_once)

    def one(name: str) -> None:
        with places:
            put(name)

    green.gather([partial(one, name) for name in names])
    seconds = time.monotonic() - begin_s
    elapsed = f"{seconds:.0f}s" if seconds < 60 else f"{seconds / 60:.0f}m"
    retries = client.retried - retried
    print(f"Created {len(names)} {noun}s for dispersion reporting, {elapsed}, {retries} retries", flush=True)


def run(args: argparse.Namespace) -> None:
    """Make everything. Raises ``SwiftError`` and OSError."""
    settings = dispersion.read_conf(args.config)
    cluster, policy = dispersion.find_policy(settings, args.policy_name)
    print(f"Using storage policy: {policy.name} ", flush=True)
    client = DispersionClient(
        dispersion.log_in(settings, insecure=args.insecure), settings, insecure=args.insecure
    )
    rings = Rings(settings.swift_dir, cluster.policies)
    hasher, account = cluster.config.hasher, client.account
    header = {"X-Storage-Policy": policy.name}
    if settings.container_populate and not args.object_only:
        prefix = f"dispersion_{policy.index}_"
        taken = [n for n in client.names() if n.startswith(prefix)] if args.no_overlap else []
        names = names_for_partitions(
            rings.container,
            lambda name: hasher.digest(account, name),
            prefix,
            settings.dispersion_coverage,
            start=args.container_suffix_start,
            taken=taken,
        )
        populate(
            "container", list(names), lambda n: client.put(f"/{n}", header), client, settings.concurrency
        )
    if settings.object_populate and not args.container_only:
        _populate_objects(args, settings, policy, client, rings, hasher)


def _populate_objects(
    args: argparse.Namespace,
    settings: DispersionSettings,
    policy: Policy,
    client: DispersionClient,
    rings: Rings,
    hasher: PathHasher,
) -> None:
    container, account = f"dispersion_objects_{policy.index}", client.account
    client.put(f"/{container}", {"X-Storage-Policy": policy.name})
    names = names_for_partitions(
        rings.object(policy),
        lambda name: hasher.digest(account, container, name),
        "dispersion_",
        settings.dispersion_coverage,
        start=args.object_suffix_start,
        taken=list(client.names(container)) if args.no_overlap else [],
    )

    def put(name: str) -> None:
        client.put(f"/{container}/{name}", {"X-Object-Meta-Dispersion": name}, name.encode())

    populate("object", list(names), put, client, settings.concurrency)


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-dispersion-populate",
        description="Make containers and objects in a part of all partitions, for swift-dispersion-report.",
        epilog="example: swift-dispersion-populate --no-overlap -P gold",
    )
    dispersion.add_arguments(parser)
    add = parser.add_argument
    add("--container-suffix-start", type=int, default=0, help="first number of a container's name")
    add("--object-suffix-start", type=int, default=0, help="first number of an object's name")
    add("--no-overlap", action="store_true", help="cover partitions that nothing is in yet")
    return parser


@reports_errors("swift-dispersion-populate")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    args = make_parser().parse_args(argv)
    run(args)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
