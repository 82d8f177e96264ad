"""Filters and daemons of the distribution, without importing their modules.

``declared.json`` lists them. ``python -m tools.generate`` makes it from the declarations ``FILTER`` and
``DAEMON`` in their modules; ``setup.py`` makes entry points and commands of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
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


class Declared(TypedDict):
    """The content of ``declared.json``."""

    daemons: dict[str, DeclaredDaemon]


@cache
def _declared() -> Declared:
    data = json.loads(DECLARED_FILE.read_text())
    return {"daemons": {name: DeclaredDaemon(**each) for name, each in data["daemons"].items()}}


def daemons() -> Mapping[str, DeclaredDaemon]:
    """Return the daemons by name, sorted."""
    return _declared()["daemons"]
