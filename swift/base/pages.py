"""Listings that come in pages: each page begins after the last row of the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Row = TypeVar("Row")
#: The place of a row in its listing: a name, for versions a name and a version.
Position = TypeVar("Position")


def follow_pages(
    read: Callable[[Position], Sequence[Row]],
    start: Position,
    position_of: Callable[[Row], Position],
    *,
    limit: int = 1,
) -> Iterator[Sequence[Row]]:
    """Yield the pages of a listing; ``read`` returns the page after a position.

    The listing ends with a page of fewer than ``limit`` rows; an empty page is not yielded.
    """
    position = start
    while rows := read(position):
        yield rows
        if len(rows) < limit:
            return
        position = position_of(rows[-1])
