"""Checking that an archive is a row of whole fragments of one index (spec: replication.md §4).

An archive's MD5 tells that it is what was written; the headers in it tell that what was written can be
decoded. Bytes are fed in any pieces.
"""

from __future__ import annotations

from swift.ec.fragment import HEADER_BYTES, BadFragment, FragmentHeader
from swift.http import fields
from swift.policy.policy import Policy
from swift.store.api import ObjectState
from swift.store.errors import Damaged

#: What an erasure coded archive must tell to be of any use (object-disk.md §5).
_EC_NEEDED = ("Content-Length", fields.SYSMETA_EC_FRAG_INDEX.title(), fields.SYSMETA_EC_ETAG.title())


class FragmentWalk:
    """Steps from header to header through the bytes of an archive."""

    def __init__(self, index: str):
        self._index = index
        self._head = b""
        self._skip = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes; raises ``Damaged``."""
        position = 0
        while position < len(data):
            if self._skip:
                step = min(self._skip, len(data) - position)
                self._skip -= step
                position += step
                continue
            wanted = HEADER_BYTES - len(self._head)
            self._head += data[position : position + wanted]
            position += wanted
            if len(self._head) == HEADER_BYTES:
                self._take_header()

    def _take_header(self) -> None:
        try:
            header = FragmentHeader.parse(self._head)
        except BadFragment as error:
            raise Damaged(str(error))
        if str(header.index) != self._index:
            raise Damaged(f"a fragment of index {header.index} is in the archive of index {self._index}")
        self._head, self._skip = b"", header.payload_size

    def finish(self) -> None:
        """The archive has ended; raises ``Damaged`` when a fragment has not."""
        if self._head or self._skip:
            raise Damaged("the archive ends inside a fragment")


def archive_walk(policy: Policy, state: ObjectState) -> FragmentWalk | None:
    """What checks the archive of an erasure coded object; raises ``Damaged`` when metadata it needs lacks."""
    if not policy.is_ec:
        return None
    for name in _EC_NEEDED:
        if name not in state.metadata:
            raise Damaged(f"metadata lacks {name}")
    return FragmentWalk(state.metadata[_EC_NEEDED[1]])
