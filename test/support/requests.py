"""Request bodies that come as a test says."""

from swift.http.body import RequestBody


class PiecedBody(RequestBody):
    """A body that comes in these pieces; an exception among them is raised."""

    def __init__(self, *pieces, length=None):
        self.length = length
        self.received = 0
        self._pieces = list(pieces)

    def read(self, size=-1):
        assert size != 0, "nobody asks for nothing"
        if size < 0:
            return b"".join(iter(lambda: self.read(1 << 20), b""))
        while self._pieces:
            piece = self._pieces.pop(0)
            if isinstance(piece, Exception):
                raise piece
            if piece:
                self._pieces[:0] = [piece[size:]]
                self.received += len(piece[:size])
                return piece[:size]
        return b""
