"""How long a green thread let others run while it was in a call that may block.

Who judges a device by how long calls take must not count what was not the device's doing: waiting for a lock
or for others to join a sync, during which the event loop went on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Every green thread has a context of its own.
_waited_s = ContextVar("waited_s", default=0.0)


def waited_s() -> float:
    """Seconds this green thread has waited since it began; only differences mean something."""
    return _waited_s.get()


@contextmanager
def letting_others_run(monotonic: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """What happens inside is waiting."""
    started = monotonic()
    try:
        yield
    finally:
        _waited_s.set(_waited_s.get() + monotonic() - started)
