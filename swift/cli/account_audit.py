"""swift-account-audit: compare listings and copies of accounts, containers and objects on all their nodes.

spec: cli-and-config.md §12
"""

from __future__ import annotations

from swift import green

green.patch()

import argparse  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
from collections import Counter  # noqa: E402
from collections.abc import Callable, Mapping, Sequence  # noqa: E402
from dataclasses import dataclass, field  # noqa: E402
from functools import partial  # noqa: E402
from hashlib import md5  # noqa: E402
from urllib.parse import quote  # noqa: E402

from swift.base.entity import EntityPath  # noqa: E402
from swift.base.errors import SwiftError  # noqa: E402
from swift.cli.services import SWIFT_DIR  # noqa: E402
from swift.cluster.client import make_transport  # noqa: E402
from swift.cluster.direct import DirectClient, node_path  # noqa: E402
from swift.cluster.rings import Rings  # noqa: E402
from swift.cluster.transport import Reply, TransportError  # noqa: E402
from swift.compose import Cluster, cluster_of  # noqa: E402
from swift.http import fields  # noqa: E402
from swift.http.headers import HeaderMap  # noqa: E402
from swift.ring.device import Node  # noqa: E402
from swift.ring.ring import Ring  # noqa: E402
from swift.telemetry.metrics import Registry  # noqa: E402

CONN_TIMEOUT_S = 5.0
NODE_TIMEOUT_S = 60.0

#: Section → counters of the report, each with its label.
SECTIONS = (
    (
        "accounts",
        "  Accounts checked",
        (
            ("missing", "  Missing Replicas"),
            ("exceptions", "        Exceptions"),
            ("container_mismatch", "Container mismatch"),
            ("object_mismatch", "   Object mismatch"),
        ),
    ),
    (
        "containers",
        "Containers checked",
        (
            ("missing", "  Missing Replicas"),
            ("exceptions", "        Exceptions"),
            ("count_mismatch", "    Count mismatch"),
            ("object_mismatch", "   Object mismatch"),
        ),
    ),
    (
        "objects",
        "   Objects checked",
        (
            ("missing", "  Missing Replicas"),
            ("exceptions", "        Exceptions"),
            ("md5_mismatch", "      MD5 Mismatch"),
        ),
    ),
)


@dataclass
class Counts:
    """What was checked and found, by section."""

    checked: Counter[str] = field(default_factory=Counter)
    found: dict[str, Counter[str]] = field(default_factory=dict)

    def note(self, section: str, what: str, count: int = 1) -> None:
        """Count a finding."""
        self.found.setdefault(section, Counter())[what] += count

    def lines(self) -> list[str]:
        """The report for people."""
        out = [""]
        for section, label, counters in SECTIONS:
            out.append(f"{label}: {self.checked[section]}")
            have = self.found.get(section, Counter())
            out += [f"{text}: {have[name]}" for name, text in counters if have[name]]
            out.append("")
        return out

    def as_json(self) -> dict[str, Mapping[str, int]]:
        """The report for programs."""
        return {
            section: {"checked": self.checked[section], **self.found.get(section, {})}
            for section, _label, _counters in SECTIONS
        }


class Auditor:
    """Asks all nodes of everything; what was asked once is not asked again."""

    def __init__(
        self,
        cluster: Cluster,
        rings: Rings,
        client: DirectClient,
        *,
        deep: bool,
        say: Callable[[str], None],
        tell_bad: Callable[[EntityPath], None],
        at_once: int,
    ):
        self._cluster = cluster
        self._rings = rings
        self._client = client
        self._deep = deep
        self._say = say
        self._tell_bad = tell_bad
        self._places = green.Semaphore(at_once)
        self._listings: dict[EntityPath, dict[str, dict[str, object]]] = {}
        self._policies: dict[EntityPath, int] = {}
        self.counts = Counts()

    def audit(self, path: EntityPath) -> None:
        """Audit an entity and all below it; of what is above it, whether it lists it."""
        if path.kind == "account":
            self._below(path, self._account(path))
        elif path.kind == "container":
            self._below(path, self._container(path))
        else:
            self._object(path)

    def _below(self, path: EntityPath, listing: Mapping[str, object]) -> None:
        if path.container is None:
            children = [EntityPath(path.account, name) for name in listing]
        else:
            children = [EntityPath(path.account, path.container, name) for name in listing]
        green.gather([partial(self.audit, child) for child in children])

    # --- one node

    def _ask(
        self, node: Node, part: int, method: str, path: EntityPath, headers: HeaderMap, query: str = ""
    ) -> Reply:
        target = node_path(node.device, part, path.quoted) + (f"?{query}" if query else "")
        with self._places:
            return self._client.send((node.ip, node.port), method, target, {"content-length": "0", **headers})

    def _rows(self, node: Node, part: int, path: EntityPath) -> tuple[Reply, list[dict[str, object]]]:
        rows: list[dict[str, object]] = []
        marker = ""
        while True:
            reply = self._ask(node, part, "GET", path, {}, f"format=json&marker={quote(marker, safe='')}")
            page = json.loads(reply.body) if reply.is_success and reply.body else []
            if not page:
                return reply, rows
            rows += page
            marker = str(page[-1]["name"])

    def _nodes(self, ring: Ring, path: EntityPath) -> tuple[int, tuple[Node, ...]]:
        return ring.nodes(self._cluster.config.hasher.digest(*path))

    def _asked_all(
        self, section: str, path: EntityPath, ring: Ring
    ) -> list[tuple[Node, Reply, list[dict[str, object]]]]:
        """The good answers of all nodes; the others are told and counted."""
        part, nodes = self._nodes(ring, path)
        good = []

        def one(node: Node) -> None:
            try:
                reply, rows = self._rows(node, part, path)
            except (TransportError, ValueError):
                self.counts.note(section, "exceptions")
                self._say(f"  Exception GETting {path.kind} {_shown(path)} on {node.ip}/{node.device}")
                return
            if not reply.is_success:
                self.counts.note(section, "missing")
                is_account = path.kind == "account"
                where = f" from {node.ip}:{node.device}" if is_account else f"on {node.ip}/{node.device}"
                self._say(f"  Bad status GETting {path.kind} {_shown(path)} {where}")
                return
            good.append((node, reply, rows))

        green.gather([partial(one, node) for node in nodes])
        return good

    # --- accounts, containers, objects

    def _account(self, path: EntityPath) -> dict[str, dict[str, object]]:
        if path in self._listings:
            return self._listings[path]
        self._listings[path] = {}
        self._say(f'Auditing account "{path.account}"')
        self.counts.checked["accounts"] += 1
        good = self._asked_all("accounts", path, self._rings.account)
        for what, noun in (("container", "containers"), ("object", "objects")):
            counts = [int(reply.headers.get(f"x-account-{what}-count", "0")) for _, reply, _ in good]
            if len(set(counts)) != 1:
                self.counts.note("accounts", f"{what}_mismatch")
                self._say(f"  Account databases for '{path.account}' don't agree on number of {noun}.")
                if counts:
                    self._say(f"  Max: {max(counts)}, Min: {min(counts)}")
                self._tell_bad(path)
        merged = {str(row["name"]): row for _, _, rows in good for row in rows if "name" in row}
        self._listings[path] = merged
        return merged

    def _container(self, path: EntityPath) -> dict[str, dict[str, object]]:
        if path in self._listings:
            return self._listings[path]
        self._listings[path] = {}
        self._say(f'Auditing container "{path.container}"')
        if path.container not in self._account(path.parent):
            self._say(f"  Container {path} not in account listing!")
        self.counts.checked["containers"] += 1
        good = self._asked_all("containers", path, self._rings.container)
        if not good:
            self._say(f"  Failed to fetch container {path} at all!")
            self._tell_bad(path)
            return {}
        self._policies[path] = int(good[0][1].headers.get(fields.BACKEND_STORAGE_POLICY_INDEX, "0"))
        counts = [int(reply.headers.get("x-container-object-count", "0")) for _, reply, _ in good]
        if len(set(counts)) != 1:
            self.counts.note("containers", "count_mismatch")
            self._say(f"  Container databases for '{path}' don't agree on number of objects.")
            self._say(f"  Max: {max(counts)}, Min: {min(counts)}")
            self._tell_bad(path)
        self._compare(path, [rows for _, _, rows in good])
        merged = {str(row["name"]): row for _, _, rows in good for row in rows if "name" in row}
        self._listings[path] = merged
        return merged

    def _compare(self, path: EntityPath, listings: Sequence[Sequence[Mapping[str, object]]]) -> None:
        """Tell which objects are not the same in all copies of a listing."""
        seen: dict[object, set[object]] = {}
        for rows in listings:
            for row in rows:
                seen.setdefault(row.get("name"), set()).add(row.get("hash"))
        for name, hashes in seen.items():
            if len(hashes) > 1:
                self.counts.note("containers", "object_mismatch")
                self._say(f"  Different versions of {path}/{name} in container dbs.")
                self._tell_bad(path)

    def _object(self, path: EntityPath) -> None:
        row = self._container(path.parent).get(path.obj or "")
        self.counts.checked["objects"] += 1
        if row is None:
            self._say(f"  Object {path} missing in container listing!")
        policy = (
            self._cluster.policies.get(self._policies.get(path.parent, 0)) or self._cluster.policies.default
        )
        part, nodes = self._nodes(self._rings.object(policy), path)
        headers = {fields.BACKEND_STORAGE_POLICY_INDEX: str(policy.index)}
        method = "GET" if self._deep and policy.ec is None else "HEAD"
        etags: list[str] = []

        def one(node: Node) -> None:
            where = f'"{path}" on {node.ip}/{node.device}'
            try:
                reply = self._ask(node, part, method, path, headers)
            except TransportError:
                self.counts.note("objects", "exceptions")
                self._say(f"  Exception fetching object {where}")
                return
            if not reply.is_success:
                self.counts.note("objects", "missing")
                self._say(
                    f"  Bad status {reply.status} {method}{'t' if method == 'GET' else ''}ing object {where}"
                )
                self._tell_bad(path)
                return
            etag = reply.headers.get("etag", "").strip('"')
            etags.append(etag)
            if method == "GET" and md5(reply.body, usedforsecurity=False).hexdigest() != etag:
                self.counts.note("objects", "md5_mismatch")
                self._say(f"  MD5 does not match etag for {where}")
                self._tell_bad(path)

        green.gather([partial(one, node) for node in nodes])
        if not etags:
            self._say(f"  Failed fo fetch object {path} at all!")
            self._tell_bad(path)
        elif policy.ec is None and len(set(etags)) > 1:
            self.counts.note("objects", "md5_mismatch")
            self._say(f'  Copies of "{path}" differ')
            self._tell_bad(path)


def _shown(path: EntityPath) -> str:
    return f"'{path.account}'" if path.kind == "account" else f'"{path}"'


def parse_url(text: str) -> EntityPath | None:
    """The entity of ``account[/container[/object]]``; None when it names nothing."""
    parts = [part for part in text.strip().lstrip("/").split("/", 2) if part]
    return EntityPath(*parts) if parts else None


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="swift-account-audit",
        description="Compare listings and copies of accounts, containers and objects on all their nodes. "
        "Without arguments the paths are read from standard input.",
        epilog="example: swift-account-audit -e errors.txt AUTH_test/photos",
    )
    parser.add_argument("urls", nargs="*", metavar="url", help="account[/container[/object]]")
    parser.add_argument(
        "-c", "--concurrency", type=int, default=50, help="requests at the same time (default: %(default)s)"
    )
    parser.add_argument("-r", "--ring-dir", default=SWIFT_DIR, help="directory of the rings (%(default)s)")
    parser.add_argument(
        "-e", "--errors", default="", help="file for the paths of what is not as it should be"
    )
    parser.add_argument(
        "-d", "--deep", action="store_true", help="also read the objects and compare their MD5"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how to report")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The console script; 0 when everything was looked at, whatever was found, 2 for wrong usage."""
    parser = make_parser()
    args = parser.parse_intermixed_args(argv)
    words = args.urls or ([] if sys.stdin.isatty() else sys.stdin.read().splitlines())
    paths = [path for path in map(parse_url, words) if path is not None]
    if not paths or args.concurrency < 1:
        parser.print_help()
        return 2
    green.use_hub()
    bad: dict[EntityPath, None] = {}
    is_text = args.format == "text"
    try:
        cluster = cluster_of({"swift_dir": args.ring_dir})
        auditor = Auditor(
            cluster,
            Rings(args.ring_dir, cluster.policies),
            DirectClient(
                make_transport(Registry()),
                "account-audit",
                conn_timeout_s=CONN_TIMEOUT_S,
                node_timeout_s=NODE_TIMEOUT_S,
            ),
            deep=args.deep,
            say=lambda text: print(text, flush=True) if is_text else None,
            tell_bad=lambda path: bad.update({path: None}),
            at_once=args.concurrency,
        )
        green.gather([partial(auditor.audit, path) for path in paths])
        if args.errors:
            with open(args.errors, "w") as file:
                file.writelines(f"{path}\n" for path in bad)
    except (SwiftError, OSError) as error:
        print(f"swift-account-audit: {error}", file=sys.stderr)
        return 1
    counts = auditor.counts
    print("\n".join(counts.lines()) if is_text else json.dumps(counts.as_json(), indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
