"""``swift/config/declared.json``: the daemons that modules of the distribution declare."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import swift
from swift.config.declared import DECLARED_FILE
from swift.runtime.declaration import Daemon

PACKAGE = Path(swift.__file__).parent


def modules_with(variable: str) -> Iterator[str]:
    """Return the dotted names of the modules that assign a variable at their top level."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if re.search(rf"^{variable} = ", path.read_text(), re.MULTILINE):
            yield ".".join(("swift", *path.relative_to(PACKAGE).with_suffix("").parts))


def daemons() -> dict[str, tuple[str, Daemon]]:
    """Return the declared daemons: name → module and declaration, sorted."""
    found = {}
    for module in modules_with("DAEMON"):
        daemon = import_module(module).DAEMON
        if isinstance(daemon, Daemon):
            found[daemon.name] = (module, daemon)
    return dict(sorted(found.items()))


def files(root: Path) -> Iterator[tuple[Path, str]]:
    """Return the file below ``root`` with its text."""
    data = {
        "daemons": {
            name: {
                "module": module,
                "server_type": daemon.server_type,
                "conf_name": daemon.conf_name,
                "once_per_cluster": daemon.once_per_cluster,
                "small_cluster": dict(daemon.small_cluster),
            }
            for name, (module, daemon) in daemons().items()
        }
    }
    yield root / "swift" / "config" / DECLARED_FILE.name, json.dumps(data, indent=1) + "\n"
