"""The signature of the state of a layout: only holders of ``layout.key`` change it.

Any holder of the secret of the servers can store the state's document, and each storage node may have a
replica of it. The controller signs the rings that follow from it, so it takes none that was not signed.
Builders are named by their SHA-256 in the state. doc/formats/layout.md
"""

from __future__ import annotations

from swift.layout.state import DamagedLayout
from swift.ring.errors import LayoutError
from swift.ring.layoutfiles import PUBLIC_KEYS, LayoutFolder, read_private_key
from swift.ring.manifest import sign_text, verify_text

_HEAD = b"swift-layout-state 1 "


class StateSeal:
    """Signs with ``layout.key`` of a directory, and checks with its ``layout.pub``."""

    def __init__(self, swift_dir: str):
        self._folder = LayoutFolder(swift_dir)

    def sign(self, document: bytes) -> bytes:
        """Return a document with its signature. Raises LayoutError and OSError, without the key above all."""
        try:
            key = read_private_key(self._folder.path)
        except FileNotFoundError as error:
            raise LayoutError(f"{error.filename} is missing: run this where the controller runs") from error
        return sign_text(_HEAD, document, key)

    def check(self, data: bytes) -> bytes:
        """Return the document of signed bytes. Raises ``DamagedLayout``, LayoutError and OSError."""
        trusted = self._folder.trusted_keys()
        if trusted is None:
            raise LayoutError(f"{self._folder.path_of(PUBLIC_KEYS)} is missing: copy it from another node")
        try:
            return verify_text(_HEAD, data, trusted)
        except LayoutError as error:
            raise DamagedLayout(f"the layout's document is not used: {error}") from error

    def __repr__(self) -> str:
        return f"StateSeal({self._folder.path!r})"
