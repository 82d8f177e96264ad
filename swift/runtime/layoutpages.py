"""The layout of a storage server's node, for other nodes: its manifest and the files that it names.

``GET /.layout/manifest`` and ``GET /.layout/<SHA-256>``. Nothing else of the folder can be read. The receiver
compares checksums, so that a file that was changed by hand does no harm here.
"""

from __future__ import annotations

import os

from swift.http.body import FileBody
from swift.http.request import Request
from swift.http.response import TEXT, Response, error_response
from swift.platform.disk import Disk
from swift.platform.regularfiles import check_regular
from swift.ring.errors import LayoutError
from swift.ring.layoutfiles import LayoutFolder
from swift.ring.manifest import MANIFEST_TYPE, is_digest

PREFIX = "/.layout/"
MANIFEST_PATH = f"{PREFIX}manifest"
_FILE_TYPE = "application/octet-stream"


class LayoutPages:
    """Responses of a node; ``swift_dir`` empty stands for a node without a layout."""

    def __init__(self, swift_dir: str = ""):
        self._folder = LayoutFolder(swift_dir) if swift_dir else None
        self._disk = Disk()

    def handle(self, request: Request) -> Response:
        """Return the response to a request below ``PREFIX``."""
        if request.method != "GET":
            return error_response(405, headers={"allow": "GET"})
        try:
            installed = self._folder.installed() if self._folder else None
            if installed is None or self._folder is None:
                return error_response(404)
            name = request.raw_path.removeprefix(PREFIX)
            if request.raw_path == MANIFEST_PATH:
                return Response(200, {"content-type": MANIFEST_TYPE}, installed.data)
            if not is_digest(name):
                return error_response(404)
            for file, entry in installed.manifest.files.items():
                if entry.sha256 == name:
                    return self._file(self._folder.path_of(file), entry.size_bytes)
            return error_response(404)
        except (LayoutError, FileNotFoundError) as error:
            return error_response(404, str(error), content_type=TEXT)
        except OSError as error:
            return error_response(503, str(error), content_type=TEXT)

    def _file(self, path: str, size_bytes: int) -> Response:
        """Return the content of a file, 404 if its size is another one. Raises OSError."""
        disk = self._disk
        fd = disk.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = disk.fstat(fd)
            check_regular(status.st_mode, path)
        except BaseException:
            disk.close(fd)
            raise
        body = FileBody(fd, 0, size_bytes, lambda: disk.close(fd))
        if status.st_size != size_bytes:
            body.close()
            return error_response(404)
        return Response(200, {"content-type": _FILE_TYPE, "content-length": str(size_bytes)}, body)

    def __repr__(self) -> str:
        return f"<LayoutPages of {self._folder}>"
