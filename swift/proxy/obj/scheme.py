"""The erasure code of a policy, and the headers by which archives describe their object."""

from __future__ import annotations

from dataclasses import dataclass

from swift.base.digits import is_digits
from swift.ec.archive import archive_length, geometry_of
from swift.ec.codec import Codec, CodecError
from swift.ec.geometry import Geometry
from swift.green import ThreadPool
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.response import HTTPError
from swift.policy.policy import ErasureCode, Policy
from swift.proxy.context import ProxyContext

PREFIX = fields.SYSMETA_EC
ETAG = PREFIX + "etag"
LENGTH = PREFIX + "content-length"
SEGMENT_SIZE = PREFIX + "segment-size"

#: Segments from this size on are hashed in a thread; for smaller ones the switch costs more than it saves.
THREAD_BYTES = 128 << 10
#: No codec takes larger segments; metadata may be damaged.
_SEGMENT_MAX = 1 << 30
#: Threads that hash; more than cores would only take turns.
THREADS = 4


@dataclass(frozen=True, slots=True)
class Scheme:
    """The code of a policy."""

    ec: ErasureCode
    codec: Codec
    geometry: Geometry

    def archive_length(self, length: int) -> int:
        """Return the size of every archive of an object of ``length`` bytes."""
        return archive_length(self.codec, self.geometry, length)

    def geometry_for(self, headers: HeaderMap) -> Geometry:
        """Return the geometry of a stored object: that of its policy, unless it was written under another."""
        text = headers.get(SEGMENT_SIZE, "")
        size = int(text) if is_digits(text) else 0
        if not 0 < size <= _SEGMENT_MAX or size == self.geometry.segment_size:
            return self.geometry
        return geometry_of(self.codec, size)


class Schemes:
    """The codes of all policies, made at their first use."""

    def __init__(self, context: ProxyContext):
        self._context = context
        self._made: dict[int, Scheme] = {}
        self.threads = ThreadPool(THREADS, "ec")

    def for_policy(self, policy: Policy) -> Scheme:
        """Return the code of a policy; raise 503 when this machine cannot compute it."""
        scheme = self._made.get(policy.index)
        if scheme is None:
            assert policy.ec is not None, "only erasure coded policies have a code"
            try:
                codec = Codec(policy.ec.ec_type, policy.ec.data, policy.ec.parity)
            except CodecError as error:
                self._context.telemetry.log.error(f"ERROR cannot serve policy {policy.name}: {error}")
                raise HTTPError(503)
            geometry = geometry_of(codec, policy.ec.segment_size)
            scheme = self._made[policy.index] = Scheme(policy.ec, codec, geometry)
        return scheme


def match_object_etag(headers: HeaderMap) -> None:
    """Let nodes evaluate conditions by the ETag of the object instead of their archive's."""
    also = headers.get(fields.BACKEND_ETAG_IS_AT)
    headers[fields.BACKEND_ETAG_IS_AT] = f"{also},{ETAG.title()}" if also else ETAG.title()


def object_headers(headers: HeaderMap) -> None:
    """Turn an archive's headers into the object's, in place."""
    etag = headers.get(ETAG)
    length = headers.get(LENGTH)
    for name in [name for name in headers if name.startswith(PREFIX)]:
        del headers[name]
    if etag is not None:
        headers["etag"] = etag
    if length is not None and "content-length" in headers:
        headers["content-length"] = length
