"""Comparison of the tier's entries with the disk: each difference is a bug.

An entry that others change while it is looked at is looked at again. One that differs is dropped and told.

Apart from its command because it is work on the tier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from swift.store.tier.directory import HashDirectory
from swift.store.tier.entries import device_of
from swift.store.tier.policy import METADATA
from swift.store.tier.tier import CacheTier

_TRIES = 3


@dataclass
class ScrubResult:
    """Result of a scrub."""

    same: int = 0
    #: Not believed anyhow before they are compared, so no reader was told anything wrong.
    unproven: int = 0
    #: Changed while they were looked at, again and again.
    busy: int = 0
    #: Directory and difference.
    differences: list[tuple[str, str]] = field(default_factory=list)


class TierScrub:
    """Compares entries; ``device_path`` gives the directory of a device, raising ``DeviceUnavailable``."""

    def __init__(self, tier: CacheTier, device_path: Callable[[str], str]):
        self._tier = tier
        self._device_path = device_path

    def compare(self, paths: Iterable[bytes], pace: Callable[[], None] = lambda: None) -> ScrubResult:
        """Compare entries with the disk. Raises OSError, ``IndexFailed`` and ``DeviceUnavailable``."""
        done = ScrubResult()
        for path in paths:
            self._one(path, done)
            pace()
        return done

    def _one(self, path: bytes, done: ScrubResult) -> None:
        device = device_of(path)
        device_path = self._device_path(device)
        hash_dir = HashDirectory(device_path, f"{device_path}/{path.decode().partition('/')[2]}", None)
        for _ in range(_TRIES):
            entries = self._tier.entries()
            if entries is None:
                return
            self._tier.watch(device_path)
            start = entries.start(path)
            found = entries.find(path)
            if found is None:
                return
            if found.epoch != start.epoch:
                done.unproven += 1
                return
            difference = self._tier.reader.difference(hash_dir, found)
            if not difference:
                done.same += 1
                return
            if entries.start(path) == start and entries.find(path) == found:
                done.differences.append((hash_dir.directory, difference))
                self._tier.count(METADATA, device, "differences")
                entries.forget(path)
                return
        done.busy += 1
