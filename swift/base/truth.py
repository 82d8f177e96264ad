"""Boolean texts of headers and options: one truth set everywhere (spec: cli-and-config.md §1)."""

from __future__ import annotations

TRUE_WORDS = frozenset(("true", "1", "yes", "on", "t", "y"))
FALSE_WORDS = frozenset(("false", "0", "no", "off", "f", "n", "", "none", "disabled"))


def is_true(text: object) -> bool:
    """Return True if a header or option value means yes; anything not in the truth set means no."""
    return text is True or (isinstance(text, str) and text.strip().lower() in TRUE_WORDS)
