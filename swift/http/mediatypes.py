"""Content types of objects whose sender named none (spec: public-api.md §8.1)."""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Sequence
from urllib.parse import unquote


class TypeGuesser:
    """Content types by file name extension; reads the system's files and ``<swift_dir>/mime.types`` once."""

    def __init__(self, swift_dir: str, system_files: Sequence[str] = tuple(map(str, mimetypes.knownfiles))):
        self._types = mimetypes.MimeTypes()
        for path in (*system_files, os.path.join(swift_dir, "mime.types")):
            if os.path.exists(path):
                self._types.read(path)

    def guess(self, name: str) -> str:
        """Return the type of an object name, ``application/octet-stream`` when unknown."""
        return self._types.guess_type(unquote(name))[0] or "application/octet-stream"
