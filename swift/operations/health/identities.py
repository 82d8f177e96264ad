"""Records of identities for ``swift-health``, on a node of a cluster with ``swiftauth``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from swift.base.errors import SwiftError
from swift.identity.admin.damage import RecordCheck
from swift.middleware.swiftauth.local import KEY_FILE, LocalIdentities

#: Seconds that a look may read records, and until it is repeated by ``--watch``.
LIMIT_S, RECHECK_S = 2.0, 300.0


@dataclass(frozen=True)
class IdentityState:
    """The damaged records, or why the records cannot be read."""

    check: RecordCheck
    error: str = ""


class IdentityWatch:
    """Checks the records from time to time. A node without the cluster's key file has none."""

    def __init__(self, swift_dir: str, monotonic: Callable[[], float] = time.monotonic):
        self._conf = os.path.join(swift_dir, "internal-client.conf")
        self._key_file = os.path.join(swift_dir, KEY_FILE)
        self._monotonic = monotonic
        self._state: IdentityState | None = None
        self._read_at = float("-inf")

    def look(self) -> IdentityState | None:
        """Return what was found at most ``RECHECK_S`` ago; None without ``swiftauth``."""
        if not os.path.exists(self._conf) or not os.access(self._key_file, os.R_OK):
            return None
        if self._monotonic() - self._read_at > RECHECK_S:
            self._read_at = self._monotonic()
            self._state = self._read()
        return self._state

    def _read(self) -> IdentityState:
        try:
            return IdentityState(LocalIdentities(self._conf, self._key_file).check_records(LIMIT_S))
        except (SwiftError, OSError) as error:
            return IdentityState(RecordCheck((), 0, 0), str(error))
