"""The allocator of the C library: how many heaps the threads of a process have.

Every thread that allocates while another one does gets a heap of its own, up to eight for each CPU, and what
one heap has free is of no use to the others. Threads of Python take turns anyway.
"""

from __future__ import annotations

import ctypes

#: The parameter of ``mallopt(3)``.
M_ARENA_MAX = -8
#: With more, what threads for disks leave free in theirs adds up to as much again as is used.
ARENAS_MAX = 1


def limit_heaps(library: ctypes.CDLL | None = None) -> None:
    """Let the threads of this process share their heaps; before they begin. Nothing where none are known."""
    known = getattr(library or ctypes.CDLL(None), "mallopt", None)
    if known is not None:
        known(M_ARENA_MAX, ARENAS_MAX)


def return_free_memory(library: ctypes.CDLL | None = None) -> None:
    """Give free memory of the heaps back to the kernel, after an allocation that no later one will equal."""
    known = getattr(library or ctypes.CDLL(None), "malloc_trim", None)
    if known is not None:
        known(0)
