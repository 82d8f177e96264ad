"""Filters and daemons of the distribution, without importing their modules.

``declared.json`` lists them. ``python -m tools.generate`` makes it from the declarations ``FILTER`` and
``DAEMON`` in their modules; ``setup.py`` makes entry points and commands of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypedDict

DECLARED_FILE = Path(__file__).with_name("declared.json")


@dataclass(frozen=True)
class DeclaredDaemon:
    """A daemon, as its module declares it."""

    #: Dotted name of the module that has ``DAEMON``.
    module: str
    #: The kind of node that it works on: ``account``, ``container`` or ``object``.
    server_type: str
    #: The configuration file of its own; empty if it reads that of the server.
    conf_name: str = ""
    #: True if one process is enough for a cluster.
    once_per_cluster: bool = False
    #: Options of a cluster on one machine, which serves requests beside its daemons.
    small_cluster: Mapping[str, int] = field(default_factory=dict)

    @property
    def conf_base(self) -> str:
        """The name of its configuration file without ``.conf``."""
        return self.conf_name.removesuffix(".conf") or f"{self.server_type}-server"


@dataclass(frozen=True)
class DeclaredFilter:
    """A filter, as its module declares it."""

    #: Dotted name of the module that has ``FILTER``.
    module: str
    #: The name of its section in samples.
    section: str
    #: Its place in the recommended pipeline: smaller is nearer to the client.
    position: int
    #: Its pipelines: ``proxy``, ``storage`` or both.
    servers: Sequence[str]
    #: True if clusters of ``swift-aio`` have it.
    default: bool
    #: Options of its section in clusters of ``swift-aio``.
    small_cluster: Mapping[str, str]
    #: Filters that must stand right of it, and left of it: name → the harm of another order.
    left_of: Mapping[str, str]
    right_of: Mapping[str, str]
    #: A proxy that lacks the filter gets it, right of those of these that it has; None: it does not.
    required_after: Sequence[str] | None


class Declared(TypedDict):
    """The content of ``declared.json``."""

    daemons: dict[str, DeclaredDaemon]
    filters: dict[str, DeclaredFilter]


@cache
def _declared() -> Declared:
    data = json.loads(DECLARED_FILE.read_text())
    return {
        "daemons": {name: DeclaredDaemon(**each) for name, each in data["daemons"].items()},
        "filters": {name: DeclaredFilter(**each) for name, each in data["filters"].items()},
    }


def daemons() -> Mapping[str, DeclaredDaemon]:
    """Return the daemons by name, sorted."""
    return _declared()["daemons"]


def filters(server: str = "") -> Mapping[str, DeclaredFilter]:
    """Return the filters by the names of their entry points, in the order of the recommended pipeline.

    With ``server``, ``proxy`` or ``storage``, only those that stand there.
    """
    found = _declared()["filters"].items()
    return {name: each for name, each in found if not server or server in each.servers}


@cache
def filter_order() -> Mapping[tuple[str, str], str]:
    """Return what goes wrong when a filter stands right of another: (left, right) → why.

    Only pairs are here that are wrong for every operator.
    """
    order: dict[tuple[str, str], str] = {}
    for name, each in filters().items():
        order |= {(name, other): why for other, why in each.left_of.items()}
        order |= {(other, name): why for other, why in each.right_of.items()}
    return order
