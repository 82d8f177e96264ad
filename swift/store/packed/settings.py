"""The options of ``[packed]`` in object-server.conf."""

from __future__ import annotations

import os
from dataclasses import dataclass

from swift.config.kinds import ABSOLUTE_PATH, integer
from swift.config.schema import Settings, Writes, option

SECTION = "packed"
_MIB = 1 << 20


@dataclass(frozen=True)
class PackedSettings(Settings):
    """``[packed]``: object server and object daemons of a node read the same section."""

    object_max_kb: int = option(
        1024,
        "Largest body that is packed, in KiB; larger ones are files, as in the file engine. 0: packs none.",
        kind=integer(0, 65536),
    )
    volume_mb: int = option(1024, "Size of a volume, in MiB.", kind=integer(16, 1024))
    index_path: str = option(
        "",
        "Directory on an SSD for the indexes of all devices, each in a directory of its own. Empty: each "
        "index is on its device.",
        writes=Writes(),
        kind=ABSOLUTE_PATH,
    )
    state_path: str = option(
        "",
        "Directory in memory for the locks of the indexes, which object server and daemons share; it must "
        "not outlive a boot. Empty: /dev/shm/swift-packed-UID, UID being the number of their user.",
        kind=ABSOLUTE_PATH,
    )

    @property
    def state_directory(self) -> str:
        """Directory for the locks, of the user of this process unless the options name one."""
        return self.state_path or f"/dev/shm/swift-packed-{os.geteuid()}"

    @property
    def object_bytes_max(self) -> int:
        """Largest packed body, bytes."""
        return self.object_max_kb << 10

    @property
    def volume_bytes(self) -> int:
        """Size of a volume, bytes."""
        return self.volume_mb * _MIB
