"""Costs of requests on this project's servers: assumed, or measured by ``swift-plan calibrate``.

Seconds are those of a core of speed 1. A kind of request is a verb and how objects are kept (``GET copies``,
``PUT archives``); at the proxy it costs something for itself, for each node that is asked and for each byte
of the object, at a node for itself and for each byte of the copy or archive. A profile is these figures as
JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from swift.plan.assumptions import parse_number
from swift.plan.errors import PlanError

VERSION = 2
COPIES, ARCHIVES = "copies", "archives"
VERBS = ("GET", "PUT", "DELETE")
#: Requests of these verbs change what containers list.
CHANGES = ("PUT", "DELETE")


def request_kind(verb: str, *, is_coded: bool) -> str:
    """Return the name of a kind of request."""
    return f"{verb} {ARCHIVES if is_coded else COPIES}"


KINDS = tuple(f"{verb} {kept}" for verb in VERBS for kept in (COPIES, ARCHIVES))


@dataclass(frozen=True, slots=True)
class RequestCosts:
    """One kind of request; seconds, and bytes where noted."""

    #: At the proxy, with ``nodes`` nodes, and for each byte of the object.
    proxy_s: float
    proxy_byte_s: float
    nodes: float
    #: At each node, and for each byte of its copy or archive.
    store_s: float
    store_byte_s: float
    #: At who makes the load.
    client_s: float = 0.0
    client_byte_s: float = 0.0
    #: Of the kernel's own threads for each node, which write back what was stored, and for each byte there.
    kernel_s: float = 0.0
    kernel_byte_s: float = 0.0
    #: Waiting for nothing that is counted here: the disk, mostly; for each byte of a copy or archive.
    wait_s: float = 0.0
    wait_byte_s: float = 0.0
    #: Spread of requests: the standard deviation of the logarithm of their latency.
    spread: float = 0.0
    #: Bytes and writes of a small request at the disks of all nodes, and bytes over all interfaces.
    disk_bytes: float = 0.0
    disk_writes: float = 0.0
    network_bytes: float = 0.0


_GET = RequestCosts(0.002, 3e-9, 1, 0.002, 2e-9)
_PUT = RequestCosts(0.002, 3e-9, 3, 0.004, 2e-9)
_DELETE = RequestCosts(0.002, 0.0, 3, 0.003, 0.0)


def _assumed() -> dict[str, RequestCosts]:
    by_verb = {"GET": _GET, "PUT": _PUT, "DELETE": _DELETE}
    return {kind: by_verb[kind.split()[0]] for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Costs:
    """Measured costs of all kinds of requests."""

    kinds: Mapping[str, RequestCosts] = field(default_factory=_assumed)
    #: At the proxy, for each node beyond those that a kind was measured with.
    node_s: float = 0.0
    #: At a container server, for each row that it is told.
    row_s: float = 0.002
    #: The measured machine and its cores; empty: assumed.
    machine: str = ""
    cores: int = 0

    def proxy_s(self, verb: str, size: float, nodes: int, *, is_coded: bool) -> float:
        """Work of the proxy on a request for an object of ``size`` bytes at so many nodes."""
        kind = self.kinds[request_kind(verb, is_coded=is_coded)]
        return max(0.0, kind.proxy_s + self.node_s * (nodes - kind.nodes)) + kind.proxy_byte_s * size

    def store_s(self, verb: str, piece: float, *, is_coded: bool) -> float:
        """Work of a node on its copy or archive of ``piece`` bytes."""
        kind = self.kinds[request_kind(verb, is_coded=is_coded)]
        return kind.store_s + kind.store_byte_s * piece

    def byte_s(self, verb: str) -> float:
        """Return all work on a byte of a replicated object, at the proxy, at one node and at the client."""
        kind = self.kinds[request_kind(verb, is_coded=False)]
        return kind.proxy_byte_s + kind.store_byte_s + kind.client_byte_s

    def to_json(self) -> str:
        """Return a profile."""
        content = asdict(replace(self, kinds={}))
        content["kinds"] = {name: asdict(kind) for name, kind in self.kinds.items()}
        return json.dumps({"version": VERSION, **content}, indent=1) + "\n"


#: Nothing was measured.
ASSUMED = Costs()


def read_profile(path: str) -> Costs:
    """Return the costs of a profile; raises ``PlanError`` with file and field, OSError."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{path}: {error}")
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise PlanError(f"{path}: it is no profile of version {VERSION}")
    tables = content.get("kinds")
    if not isinstance(tables, dict) or set(tables) != set(KINDS):
        raise PlanError(f"{path}: kinds must have {', '.join(KINDS)}, and nothing else")
    return Costs(
        {name: _kind(table, f"{path}: {name}") for name, table in tables.items()},
        _seconds(content, "node_s", path),
        _seconds(content, "row_s", path),
        str(content.get("machine", "")),
        int(_seconds(content, "cores", path)),
    )


def _kind(table: object, where: str) -> RequestCosts:
    if not isinstance(table, dict):
        raise PlanError(f"{where} is no table")
    known = [entry.name for entry in fields(RequestCosts)]
    if unknown := sorted(set(table) - set(known)):
        raise PlanError(f"{where}: {unknown[0]!r} is not known")
    return RequestCosts(**{name: _seconds(table, name, where) for name in known})


def _seconds(table: Mapping[str, object], name: str, where: str) -> float:
    if name not in table:
        raise PlanError(f"{where}: {name} is missing")
    return float(parse_number(table[name], f"{where}: {name}"))
