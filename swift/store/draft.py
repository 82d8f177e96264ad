"""A body being written: an unnamed file, its MD5 and its chunk checksums (spec: object-disk.md §9.1-4).

Nothing of a draft is visible; closing the process removes it. ``finish`` puts the attributes in place,
after which ``platform.durable.publish`` names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import md5

from swift.base.checksum import ChunkSums, chunk_size_for
from swift.platform.disk import Disk
from swift.platform.durable import UnnamedFile, write_all
from swift.platform.fastcrc import crc32
from swift.platform.space import FULL
from swift.platform.xattrs import AttributesTooLarge, write_attribute
from swift.store.metadata import Metadata, write_metadata
from swift.store.place import Place
from swift.store.reclaim import remove_made
from swift.store.sidecar import SIDECAR_ATTRIBUTE, SMALL_BYTES, encode_sums

#: How much of a large body gathers in memory before the device is told to begin with it.
WRITEBACK_BYTES = 4 << 20
#: Bodies up to this size stay in the page cache when they are written.
KEPT_BYTES = 16 << 20


class FileDraft:
    """The draft of the filesystem engine."""

    __slots__ = (
        "file",
        "size",
        "_disk",
        "_place",
        "_made",
        "_md5",
        "_etag",
        "_sums",
        "_sync_every",
        "_synced",
        "_begun",
        "_dropped",
    )

    def __init__(
        self,
        disk: Disk,
        file: UnnamedFile,
        *,
        place: Place,
        size: int | None,
        made: Sequence[str],
        sync_every_bytes: int,
        etag_follows: bool = False,
        etag: str = "",
    ):
        self._disk = disk
        self.file = file
        self._place = place
        self._made = made
        self.size = 0
        self._md5 = None if etag_follows or etag else md5(usedforsecurity=False)
        self._etag = etag
        needs_sums = etag_follows or size is None or size > SMALL_BYTES
        self._sums = ChunkSums(chunk_size_for(size), crc32()) if needs_sums else None
        self._sync_every = sync_every_bytes
        self._synced = 0
        #: Up to where the kernel was told to write.
        self._begun = 0
        #: Up to where the page cache was given back.
        self._dropped = 0

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes; raises OSError."""
        write_all(self._disk, self.file.fd, data)
        if self._md5 is not None:
            self._md5.update(data)
        if self._sums is not None:
            self._sums.update(data)
        self.size += len(data)
        if self.size - self._begun >= WRITEBACK_BYTES:
            # The device works while the rest is still on its way, and the final sync finds little to do.
            self._disk.start_writeback(self.file.fd, self._begun, self.size - self._begun)
            if self.size > KEPT_BYTES:
                self._drop(self._begun - WRITEBACK_BYTES)
            self._begun = self.size
        if self.size - self._synced >= self._sync_every:
            # Spreads the flushing of huge bodies, so that the final sync does not stall the device.
            self._disk.fdatasync(self.file.fd)
            self._disk.drop_cache(self.file.fd, self._synced, self.size - self._synced)
            self._synced = self.size

    def _drop(self, end: int) -> None:
        """Let the kernel use the memory of what is on the device already."""
        if end > self._dropped:
            self._disk.drop_cache(self.file.fd, self._dropped, end - self._dropped)
            # What it was still writing is tried once more the next time.
            self._dropped = max(self._dropped, end - WRITEBACK_BYTES)

    def drop(self) -> None:
        """The draft is synced: a large body leaves the page cache."""
        if self.size > KEPT_BYTES:
            self._drop(self.size)

    @property
    def etag(self) -> str:
        """MD5 hex of the bytes so far, or what the draft was made with or ``accept_etag`` took."""
        return self._etag if self._md5 is None else self._md5.hexdigest()

    def accept_etag(self, etag: str, sums: str) -> bool:
        """See ``Draft``."""
        assert self._md5 is None and self._sums is not None
        if self._sums.digest() != sums:
            return False
        self._etag = etag
        return True

    def finish(self, metadata: Metadata) -> None:
        """Store metadata and checksums with the file; raises ``AttributesTooLarge`` or OSError."""
        write_metadata(self._disk, self.file.fd, metadata)
        value = encode_sums(self._sums) if self._sums is not None and self.size > SMALL_BYTES else None
        if value is None:
            return
        try:
            write_attribute(self._disk, self.file.fd, SIDECAR_ATTRIBUTE, value)
        except AttributesTooLarge:
            # The sidecar is a convenience: where attributes are full, the body goes without.
            return
        except OSError as error:
            if error.errno not in FULL:
                raise

    def discard(self) -> None:
        """Leave nothing behind, not even the directories made for it."""
        self.file.discard()
        made, self._made = self._made, ()
        if made:
            remove_made(self._disk, self._place.directory, made, keep=self._place.partition)

    def __repr__(self) -> str:
        return f"<FileDraft {self.size} bytes for {self._place.directory}>"
