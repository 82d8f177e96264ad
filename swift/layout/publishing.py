"""Publishes the rings of a layout from a node: signed, and installed there, where other nodes fetch them."""

from __future__ import annotations

from collections.abc import Mapping

from swift.ring.layoutfiles import LayoutFolder, TableCheck, accept_table, publish, read_private_key


class LocalPublisher:
    """Publishes from a directory with ``layout.key`` and ``layout.pub``."""

    def __init__(self, swift_dir: str, *, check: TableCheck = accept_table):
        self._swift_dir = swift_dir
        self._check = check

    def version(self) -> int:
        """Return the version of the rings in the directory; 0 without. Raises RingError and OSError."""
        installed = LayoutFolder(self._swift_dir).installed()
        return 0 if installed is None else installed.manifest.version

    def publish(self, version: int, issued_s: float, files: Mapping[str, bytes]) -> None:
        """Sign the files and install them here. Raises RingError and OSError."""
        key = read_private_key(self._swift_dir)
        publish(self._swift_dir, key, files, version=version, issued_s=issued_s, check=self._check)

    def __repr__(self) -> str:
        return f"LocalPublisher({self._swift_dir!r})"
