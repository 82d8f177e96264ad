"""The known word that was probably meant, for errors about what an operator typed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean WORD?`` for the known word that is nearest; empty if none is near."""
    found = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {found[0]}?" if found else ""
