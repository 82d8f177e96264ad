"""Listings and copies of accounts, containers and objects, compared on all their nodes.

What a container lists is asked for once, by the first object that needs it, though many objects are audited
at the same time. ``account_audit`` is the command.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import md5
from urllib.parse import quote

from swift import green
from swift.base.entity import EntityPath
from swift.cluster.direct import DirectClient, node_path
from swift.cluster.rings import Rings
from swift.cluster.transport import BackendResponse, TransportError
from swift.compose import Cluster
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.ring.device import Node
from swift.ring.ring import Ring

_NODES = (("missing", "  Missing Replicas"), ("exceptions", "        Exceptions"))
_OBJECTS = ("object_mismatch", "   Object mismatch")
#: Section → counters of the report, each with its label.
SECTIONS = (
    ("accounts", "  Accounts checked", (*_NODES, ("container_mismatch", "Container mismatch"), _OBJECTS)),
    ("containers", "Containers checked", (*_NODES, ("count_mismatch", "    Count mismatch"), _OBJECTS)),
    ("objects", "   Objects checked", (*_NODES, ("md5_mismatch", "      MD5 Mismatch"))),
)


@dataclass
class Counts:
    """Counts of checks and findings, by section."""

    checked: Counter[str] = field(default_factory=Counter)
    found: dict[str, Counter[str]] = field(default_factory=dict)

    def count_finding(self, section: str, what: str, count: int = 1) -> None:
        """Count a finding."""
        self.found.setdefault(section, Counter())[what] += count

    def lines(self) -> list[str]:
        """Return the report for people."""
        out = [""]
        for section, label, counters in SECTIONS:
            out.append(f"{label}: {self.checked[section]}")
            have = self.found.get(section, Counter())
            out += [f"{text}: {have[name]}" for name, text in counters if have[name]]
            out.append("")
        return out

    def as_json(self) -> dict[str, Mapping[str, int]]:
        """Return the report for programs."""
        return {
            section: {"checked": self.checked[section], **self.found.get(section, {})}
            for section, _label, _counters in SECTIONS
        }


#: Name → row.
Listing = Mapping[str, Mapping[str, object]]


class Auditor:
    """Requests everything from all nodes, each thing once."""

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
        self._report_bad = tell_bad
        self._places = green.Semaphore(at_once)
        self._listings: dict[EntityPath, Listing] = {}
        #: One for each listing that is being fetched; others wait for it.
        self._fetching: dict[EntityPath, green.Semaphore] = {}
        self._policies: dict[EntityPath, int] = {}
        self.counts = Counts()

    def audit(self, path: EntityPath) -> None:
        """Audit an entity and all below it; of what is above it, whether it lists it."""
        if path.kind == "object":
            self._object(path)
        else:
            self._below(path, self._listing(path))

    def _below(self, path: EntityPath, listing: Mapping[str, object]) -> None:
        if path.container is None:
            children = [EntityPath(path.account, name) for name in listing]
        else:
            children = [EntityPath(path.account, path.container, name) for name in listing]
        green.gather([partial(self.audit, child) for child in children])

    # --- one node

    def _request(
        self, node: Node, part: int, method: str, path: EntityPath, headers: HeaderMap, query: str = ""
    ) -> BackendResponse:
        target = node_path(node.device, part, path.quoted) + (f"?{query}" if query else "")
        with self._places:
            return self._client.request(node, method, target, {"content-length": "0", **headers})

    def _rows(
        self, node: Node, part: int, path: EntityPath
    ) -> tuple[BackendResponse, list[dict[str, object]]]:
        rows: list[dict[str, object]] = []
        marker = ""
        while True:
            reply = self._request(node, part, "GET", path, {}, f"format=json&marker={quote(marker, safe='')}")
            page = json.loads(reply.body) if reply.is_success and reply.body else []
            if not page:
                return reply, rows
            rows += page
            marker = str(page[-1]["name"])

    def _nodes(self, ring: Ring, path: EntityPath) -> tuple[int, tuple[Node, ...]]:
        return ring.nodes(self._cluster.config.hasher.digest(*path))

    def _request_all(
        self, section: str, path: EntityPath, ring: Ring
    ) -> list[tuple[Node, BackendResponse, list[dict[str, object]]]]:
        """Return the successful responses of all nodes; report and count the others."""
        part, nodes = self._nodes(ring, path)
        good = []

        def one(node: Node) -> None:
            try:
                reply, rows = self._rows(node, part, path)
            except (TransportError, ValueError):
                self.counts.count_finding(section, "exceptions")
                self._say(f"  Exception GETting {path.kind} {_display_path(path)} on {node.ip}/{node.device}")
                return
            if not reply.is_success:
                self.counts.count_finding(section, "missing")
                is_account = path.kind == "account"
                where = f" from {node.ip}:{node.device}" if is_account else f"on {node.ip}/{node.device}"
                self._say(f"  Bad status GETting {path.kind} {_display_path(path)} {where}")
                return
            good.append((node, reply, rows))

        green.gather([partial(one, node) for node in nodes])
        return good

    # --- accounts, containers, objects

    def _listing(self, path: EntityPath) -> Listing:
        """Return the merged listing of an account or container from all its nodes."""
        with self._fetching.setdefault(path, green.Semaphore(1)):
            if path not in self._listings:
                fetch = self._account if path.kind == "account" else self._container
                self._listings[path] = fetch(path)
            return self._listings[path]

    def _account(self, path: EntityPath) -> Listing:
        self._say(f'Auditing account "{path.account}"')
        self.counts.checked["accounts"] += 1
        good = self._request_all("accounts", path, self._rings.account)
        for what, noun in (("container", "containers"), ("object", "objects")):
            counts = [int(reply.headers.get(f"x-account-{what}-count", "0")) for _, reply, _ in good]
            if len(set(counts)) != 1:
                self.counts.count_finding("accounts", f"{what}_mismatch")
                self._say(f"  Account databases for '{path.account}' don't agree on number of {noun}.")
                if counts:
                    self._say(f"  Max: {max(counts)}, Min: {min(counts)}")
                self._report_bad(path)
        return {str(row["name"]): row for _, _, rows in good for row in rows if "name" in row}

    def _container(self, path: EntityPath) -> Listing:
        self._say(f'Auditing container "{path.container}"')
        if path.container not in self._listing(path.parent):
            self._say(f"  Container {path} not in account listing!")
        self.counts.checked["containers"] += 1
        good = self._request_all("containers", path, self._rings.container)
        if not good:
            self._say(f"  Failed to fetch container {path} at all!")
            self._report_bad(path)
            return {}
        self._policies[path] = int(good[0][1].headers.get(fields.BACKEND_STORAGE_POLICY_INDEX, "0"))
        counts = [int(reply.headers.get("x-container-object-count", "0")) for _, reply, _ in good]
        if len(set(counts)) != 1:
            self.counts.count_finding("containers", "count_mismatch")
            self._say(f"  Container databases for '{path}' don't agree on number of objects.")
            self._say(f"  Max: {max(counts)}, Min: {min(counts)}")
            self._report_bad(path)
        self._compare_listings(path, [rows for _, _, rows in good])
        return {str(row["name"]): row for _, _, rows in good for row in rows if "name" in row}

    def _compare_listings(self, path: EntityPath, listings: Sequence[Sequence[Mapping[str, object]]]) -> None:
        """Tell which objects are not the same in all copies of a listing."""
        seen: dict[object, set[object]] = {}
        for rows in listings:
            for row in rows:
                seen.setdefault(row.get("name"), set()).add(row.get("hash"))
        for name, hashes in seen.items():
            if len(hashes) > 1:
                self.counts.count_finding("containers", "object_mismatch")
                self._say(f"  Different versions of {path}/{name} in container dbs.")
                self._report_bad(path)

    def _object(self, path: EntityPath) -> None:
        row = self._listing(path.parent).get(path.obj or "")
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
                reply = self._request(node, part, method, path, headers)
            except TransportError:
                self.counts.count_finding("objects", "exceptions")
                self._say(f"  Exception fetching object {where}")
                return
            if not reply.is_success:
                self.counts.count_finding("objects", "missing")
                self._say(
                    f"  Bad status {reply.status} {method}{'t' if method == 'GET' else ''}ing object {where}"
                )
                self._report_bad(path)
                return
            etag = reply.headers.get("etag", "").strip('"')
            etags.append(etag)
            if method == "GET" and md5(reply.body, usedforsecurity=False).hexdigest() != etag:
                self.counts.count_finding("objects", "md5_mismatch")
                self._say(f"  MD5 does not match etag for {where}")
                self._report_bad(path)

        green.gather([partial(one, node) for node in nodes])
        if not etags:
            self._say(f"  Failed fo fetch object {path} at all!")
            self._report_bad(path)
        elif policy.ec is None and len(set(etags)) > 1:
            self.counts.count_finding("objects", "md5_mismatch")
            self._say(f'  Copies of "{path}" differ')
            self._report_bad(path)


def _display_path(path: EntityPath) -> str:
    return f"'{path.account}'" if path.kind == "account" else f'"{path}"'
