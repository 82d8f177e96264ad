"""Transaction ids that follow a request through every server (spec: public-api.md §2)."""

from __future__ import annotations

import time
from random import getrandbits
from urllib.parse import quote


def new_transaction_id(suffix: str = "", extra: str | None = None, *, now_s: float | None = None) -> str:
    """Return ``tx`` + 21 hex + ``-`` + 10 hex of Unix seconds + quoted suffix [+ ``-`` + extra[:32]]."""
    seconds = int(time.time() if now_s is None else now_s)
    text = f"tx{getrandbits(84):021x}-{seconds:010x}"
    if suffix:
        text += quote(suffix)
    if extra:
        text += "-" + quote(extra[:32])
    return text
