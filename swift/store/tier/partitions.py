"""The class ``hashes``: suffix hashes of partitions, and marks that say whether they are the same.

An entry of another epoch is not compared with the disk but dropped: hashes that were computed before a
boot or while nobody was watching are those that the engine itself doubts (decision 0005).
"""

from __future__ import annotations

from swift.store.hashes import SuffixHash
from swift.store.tier.entries import Start, device_of
from swift.store.tier.entry import Hashes
from swift.store.tier.index import IndexFailed
from swift.store.tier.policy import DROP, HASHES
from swift.store.tier.tier import CacheTier

#: In write-back: how many suffixes may be dirty on the disk before they are written there.
DEFERRED_MAX = 256


class PartitionHashes:
    """Hashes in a tier; every call answers None, and keeps nothing, where it cannot be used."""

    def __init__(self, tier: CacheTier):
        self._tier = tier

    def find(self, device_path: str, partition: bytes) -> Hashes | None:
        """What is known of a partition and true."""
        tier = self._tier
        try:
            entries = tier.entries()
            rules = tier.rules_of(HASHES)
            if entries is None or rules is None or not rules.means.serves:
                return None
            tier.watch(device_path)
            found = entries.find_hashes(partition)
        except IndexFailed as error:
            tier.failed(str(error))
            return None
        except OSError:
            return None
        device = device_of(partition)
        if found is not None and found.epoch != entries.words.epoch(device):
            found = None
        tier.count(HASHES, device, "misses" if found is None else "hits")
        return found

    def start(self, partition: bytes) -> Start | None:
        """Call it before hashes are computed that may be kept; None when they may not."""
        tier = self._tier
        rules = tier.rules_of(HASHES)
        if rules is None or not (tier.admits(HASHES, partition) or rules.means.on_write != DROP):
            return None
        try:
            entries = tier.entries()
            return None if entries is None else entries.start(partition)
        except OSError:
            return None

    def keep(self, partition: bytes, start: Start, hashes: dict[str, SuffixHash]) -> None:
        """Keep what was computed since ``start``, unless something could not be."""
        tier = self._tier
        known = {suffix: value for suffix, value in hashes.items() if value is not None}
        try:
            entries = tier.entries()
            if entries is None or len(known) != len(hashes):
                return
            kept = entries.keep_hashes(partition, start, Hashes(start.epoch, tier.seams.now_ns(), known))
            tier.count(HASHES, device_of(partition), "kept" if kept else "rejected")
        except (IndexFailed, OSError) as error:
            tier.failed(str(error))

    @property
    def defers(self) -> bool:
        """Whether what is computed need not be on the disk."""
        rules = self._tier.rules_of(HASHES)
        return rules is not None and rules.means.defers and not self._tier.failure
