"""Patterns of policies: ``*`` and ``?``, and variables such as ``${aws:username}``.

The value of a variable is never a pattern. A pattern is split at its stars once; matching searches the
pieces from left to right, so no pattern is slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

#: The value of a variable, None where the request has none.
Lookup = Callable[[str], str | None]
_variable_pattern = re.compile(r"\$\{([^{}]*)\}")
#: Characters that may be quoted: ``${*}``, ``${?}``, ``${$}``.
_ESCAPES = "*?$"


class _AnyText:
    """Any number of characters."""


class _AnyCharacter:
    """One character."""


class _Variable(str):
    """A name to be replaced."""


_Token = str | type[_AnyText] | type[_AnyCharacter]


class Glob:
    """A pattern; ``variable_names`` are the variables in it."""

    __slots__ = ("text", "variable_names", "_tokens", "_pieces", "_ignores_case", "_ends")

    def __init__(self, text: str, *, has_variables: bool = True, ignore_case: bool = False):
        self.text = text
        self._ignores_case = ignore_case
        self._tokens = tuple(_tokenize(text, has_variables=has_variables))
        self.variable_names = tuple(str(token) for token in self._tokens if isinstance(token, _Variable))
        pieces = None if self.variable_names else _split_at_stars(self._tokens, ignore_case=ignore_case)
        self._pieces = pieces
        #: The texts before and behind the only star: most patterns are so.
        self._ends: tuple[str, str] | None = None
        if pieces is not None and len(pieces) == 2 and not ignore_case:
            start, end = pieces
            if isinstance(start, str) and isinstance(end, str):
                self._ends = start, end

    @property
    def is_fixed(self) -> bool:
        """True if only one text matches."""
        return not self.variable_names and _AnyText not in self._tokens and _AnyCharacter not in self._tokens

    def matches(self, text: str, lookup: Lookup | None = None) -> bool:
        """Return True if a text matches; False if a variable of the pattern has no value."""
        ends = self._ends
        if ends is not None:
            start, end = ends
            return len(text) >= len(start) + len(end) and text.startswith(start) and text.endswith(end)
        pieces = self._pieces
        if pieces is None:
            tokens: list[_Token] = []
            for token in self._tokens:
                if isinstance(token, _Variable):
                    value = lookup(token) if lookup is not None else None
                    if value is None:
                        return False
                    token = str(value)
                tokens.append(token)
            pieces = _split_at_stars(tuple(tokens), ignore_case=self._ignores_case)
        return _matches_pieces(pieces, text.lower() if self._ignores_case else text)

    def __repr__(self) -> str:
        return f"<Glob {self.text!r}>"


def _tokenize(text: str, *, has_variables: bool) -> Iterator[_Token]:
    position = 0
    if has_variables:
        for found in _variable_pattern.finditer(text):
            yield from _split_wildcards(text[position : found.start()])
            name = found[1].strip()
            yield name if name and name in _ESCAPES else _Variable(name)
            position = found.end()
    yield from _split_wildcards(text[position:])


def _split_wildcards(text: str) -> Iterator[_Token]:
    for part in re.split(r"([*?])", text):
        if part:
            yield _AnyText if part == "*" else _AnyCharacter if part == "?" else part


class _WildcardPiece:
    """A piece of fixed length in which some characters are arbitrary."""

    __slots__ = ("size", "pattern")

    def __init__(self, texts: list[str | None]):
        self.size = sum(1 if text is None else len(text) for text in texts)
        pattern = "".join("." if text is None else re.escape(text) for text in texts)
        self.pattern = re.compile(pattern, re.DOTALL)


_PatternPiece = str | _WildcardPiece


def _split_at_stars(tokens: tuple[_Token, ...], *, ignore_case: bool) -> tuple[_PatternPiece, ...]:
    """Return the pieces between the stars."""
    pieces: list[list[_Token]] = [[]]
    for token in tokens:
        if token is _AnyText:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return tuple(_make_piece(piece, ignore_case=ignore_case) for piece in pieces)


def _make_piece(tokens: list[_Token], *, ignore_case: bool) -> _PatternPiece:
    texts = [
        (token.lower() if ignore_case else token) if isinstance(token, str) else None for token in tokens
    ]
    if None not in texts:
        return "".join(filter(None, texts))
    return _WildcardPiece(texts)


def _matches_pieces(pieces: tuple[_PatternPiece, ...], text: str) -> bool:
    position = _match_at(pieces[0], text, 0)
    if position is None or len(pieces) == 1:
        return position == len(text)
    last = pieces[-1]
    end = len(text) - (len(last) if isinstance(last, str) else last.size)
    if end < position or _match_at(last, text, end) is None:
        return False
    for piece in pieces[1:-1]:
        if isinstance(piece, str):
            start = text.find(piece, position, end)
            if start < 0:
                return False
            position = start + len(piece)
        else:
            found = piece.pattern.search(text, position, end)
            if found is None:
                return False
            position = found.end()
    return True


def _match_at(piece: _PatternPiece, text: str, position: int) -> int | None:
    """Return the end of a piece that begins at ``position``."""
    if isinstance(piece, str):
        return position + len(piece) if text.startswith(piece, position) else None
    found = piece.pattern.match(text, position)
    return None if found is None else found.end()


def split_outside_variables(text: str, separator: str, most: int) -> list[str]:
    """Split a pattern at most ``most`` times at a character that is not part of a variable."""
    masked = _variable_pattern.sub(lambda found: "\0" * len(found[0]), text)
    parts: list[str] = []
    start = 0
    for piece in masked.split(separator, most):
        parts.append(text[start : start + len(piece)])
        start += len(piece) + len(separator)
    return parts


def escape_wildcards(text: str) -> str:
    """Return the pattern that matches a text only."""
    return re.sub(r"[*?$]", lambda found: f"${{{found[0]}}}", text)
