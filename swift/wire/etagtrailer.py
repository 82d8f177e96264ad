"""The MD5 of a body is computed once: by the proxy that sends it, not again by every node that stores it.

A proxy offers this in the head of a chunked PUT that waits for ``100 Continue``. A node that understands
says so in that answer, leaves MD5 alone and checksums the chunks of the body instead (CRC-32, which costs a
fifth). The trailers after the last chunk bring the MD5 and the digest of the proxy's chunk checksums; unless
the node's own are the same, it stores nothing. Of an upload in documents
(``proxy.obj.commit.framing``: archives, and what filters add footers to) the footers bring both. A node of
another make ignores the offer and hashes as ever. It refuses to know who computes and compares.
"""

from __future__ import annotations

from swift.http import fields
from swift.http.headers import HeaderMap

#: In the request: the offer. In ``100 Continue``: that it is taken.
OFFER = fields.BACKEND_ETAG_TRAILER
#: The only kind of chunk checksum there is.
CRC32 = "crc32"
#: Trailers: MD5 of the body, and ``base.checksum.ChunkSums.digest``.
ETAG = fields.BACKEND_BODY_ETAG
SUMS = fields.BACKEND_BODY_SUMS


def is_offered(headers: HeaderMap) -> bool:
    """Return True if a request's head, or the answer to it, speaks of it."""
    return headers.get(OFFER) == CRC32


def trailers(etag: str, sums: str) -> HeaderMap:
    """Return the trailers that follow the last chunk."""
    return {ETAG: etag, SUMS: sums}
