"""The one error of this package: a token, a log-in or a provider is refused."""

from __future__ import annotations

from enum import Enum

from swift.base.errors import SwiftError

REASON_CHARACTERS_MAX = 200


class OidcCause(Enum):
    """The kind of an ``OidcError``; callers choose their status by it."""

    INVALID = "invalid"
    EXPIRED = "expired"
    #: The provider does not respond, or responds with something else than it should.
    UNAVAILABLE = "unavailable"


class OidcError(SwiftError):
    """A refusal whose text is safe to show and to log: one short line without any token or secret."""

    def __init__(self, reason: str, cause: OidcCause = OidcCause.INVALID):
        super().__init__(inert(reason))
        self.cause = cause

    @property
    def is_unavailable(self) -> bool:
        """Return True if the provider is at fault, so that a later attempt may succeed."""
        return self.cause is OidcCause.UNAVAILABLE


def inert(text: str) -> str:
    """Return a text as one short line: control, format and surrogate characters become ``?``."""
    if len(text) > REASON_CHARACTERS_MAX:
        text = f"{text[: REASON_CHARACTERS_MAX - 3]}..."
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)
