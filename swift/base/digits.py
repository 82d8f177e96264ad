"""Plain decimal numbers from the outside."""

from __future__ import annotations

#: No valid number has more digits; ``int`` refuses some thousands of them.
DIGITS_MAX = 20


def is_digits(text: str) -> bool:
    """Return True if ``int`` may have it: ASCII digits only, where ``str.isdigit`` takes those of all
    scripts.
    """
    return text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX
