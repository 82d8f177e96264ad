"""``swift/config/declared.json``: the filters and daemons that modules of the distribution declare."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import swift
from swift.config.declared import DECLARED_FILE
from swift.config.schema import Settings
from swift.middleware.filter import FilterDeclaration
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


def filters() -> dict[str, tuple[str, FilterDeclaration[Settings]]]:
    """Return the declared filters: name → module and declaration, in the order of the pipeline."""
    found = {}
    for module in modules_with("FILTER"):
        declared = import_module(module).FILTER
        if isinstance(declared, FilterDeclaration):
            found[declared.name] = (module, declared)
    return dict(sorted(found.items(), key=lambda item: (item[1][1].position, item[0])))


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
        },
        "filters": {
            name: {
                "module": module,
                "section": declared.section or name,
                "position": declared.position,
                "servers": list(declared.servers),
                "default": declared.default,
                "small_cluster": dict(declared.small_cluster),
                "left_of": dict(declared.left_of),
                "right_of": dict(declared.right_of),
                "required_after": declared.required_after,
            }
            for name, (module, declared) in filters().items()
        },
    }
    yield root / "swift" / "config" / DECLARED_FILE.name, json.dumps(data, indent=1) + "\n"
