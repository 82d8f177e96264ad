"""The peer's programs as the benchmarks run them: black boxes that read ``/etc/swift``.

Each gets a mount namespace with an ``/etc`` of its own, which takes root.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from swift.base.errors import ConfigError

#: What programs read from ``/etc`` besides their own configuration.
_NEEDED = ("passwd", "group", "hosts", "mime.types", "ld.so.cache")
_SCRIPT = 'mount --bind "$1" /etc && shift && exec "$@"'


class OwnEtc:
    """An ``/etc`` below ``root`` in which ``swift`` is a copy of ``configuration`` as it was at first use."""

    def __init__(self, root: Path, configuration: Path):
        self._hidden = root / "hidden-etc"
        self._configuration = configuration

    def command(self, program: Path, *words: str) -> list[str]:
        """Return the command that runs ``program`` there with the same pid; ``ConfigError`` without root."""
        if os.geteuid():
            raise ConfigError("the peer is run with an /etc/swift of its own, which needs root")
        if not self._hidden.exists():
            self._hidden.mkdir(parents=True)
            for name in _NEEDED:
                if Path("/etc", name).exists():
                    shutil.copy(f"/etc/{name}", self._hidden / name)
            shutil.copytree(self._configuration, self._hidden / "swift")
        return ["unshare", "--mount", "sh", "-c", _SCRIPT, "sh", str(self._hidden), str(program), *words]
