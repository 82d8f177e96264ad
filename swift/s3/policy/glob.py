"""Patterns of policies: ``*`` and ``?``, and variables such as ``${aws:username}``.

What a variable stands for is never a pattern. A pattern is cut at its stars once; matching looks for the
pieces from left to right, so that no pattern makes it slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

#: The value of a variable, None where the request has none.
Lookup = Callable[[str], str | None]
_variable = re.compile(r"\$\{([^{}]*)\}")
#: What may be said literally: ``${*}``, ``${?}``, ``${$}``.
_ESCAPES = "*?$"


class _Star:
    """Any number of characters."""


class _One:
    """One character."""


class _Variable(str):
    """A name to be replaced."""


_Token = str | type[_Star] | type[_One]


class Glob:
    """A pattern; ``names`` are the variables in it."""

    __slots__ = ("text", "names", "_tokens", "_pieces", "_folded")

    def __init__(self, text: str, *, variables: bool = True, folded: bool = False):
        self.text = text
        self._folded = folded
        self._tokens = tuple(_tokens_of(text, variables=variables))
        self.names = tuple(str(token) for token in self._tokens if isinstance(token, _Variable))
        self._pieces = None if self.names else _pieces_of(self._tokens, folded=folded)

    @property
    def is_fixed(self) -> bool:
        """Whether it stands for one text only."""
        return not self.names and _Star not in self._tokens and _One not in self._tokens

    def matches(self, text: str, lookup: Lookup | None = None) -> bool:
        """Whether a text is of this pattern; never if a variable in it has no value."""
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
            pieces = _pieces_of(tuple(tokens), folded=self._folded)
        return _match(pieces, text.lower() if self._folded else text)

    def __repr__(self) -> str:
        return f"<Glob {self.text!r}>"


def _tokens_of(text: str, *, variables: bool) -> Iterator[_Token]:
    place = 0
    if variables:
        for found in _variable.finditer(text):
            yield from _wild(text[place : found.start()])
            name = found[1].strip()
            yield name if name and name in _ESCAPES else _Variable(name)
            place = found.end()
    yield from _wild(text[place:])


def _wild(text: str) -> Iterator[_Token]:
    for part in re.split(r"([*?])", text):
        if part:
            yield _Star if part == "*" else _One if part == "?" else part


class _Some:
    """A piece in which some characters may be any: a text of fixed length."""

    __slots__ = ("size", "pattern")

    def __init__(self, texts: list[str | None]):
        self.size = sum(1 if text is None else len(text) for text in texts)
        pattern = "".join("." if text is None else re.escape(text) for text in texts)
        self.pattern = re.compile(pattern, re.DOTALL)


_Piece = str | _Some


def _pieces_of(tokens: tuple[_Token, ...], *, folded: bool) -> tuple[_Piece, ...]:
    """What is between the stars."""
    pieces: list[list[_Token]] = [[]]
    for token in tokens:
        if token is _Star:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return tuple(_piece(piece, folded=folded) for piece in pieces)


def _piece(tokens: list[_Token], *, folded: bool) -> _Piece:
    texts = [(token.lower() if folded else token) if isinstance(token, str) else None for token in tokens]
    if None not in texts:
        return "".join(filter(None, texts))
    return _Some(texts)


def _match(pieces: tuple[_Piece, ...], text: str) -> bool:
    first, *rest = pieces
    place = _at(first, text, 0)
    if place is None:
        return False
    if not rest:
        return place == len(text)
    for piece in rest[:-1]:
        place = _after(piece, text, place)
        if place is None:
            return False
    last = rest[-1]
    start = len(text) - (len(last) if isinstance(last, str) else last.size)
    return start >= place and _at(last, text, start) is not None


def _at(piece: _Piece, text: str, place: int) -> int | None:
    """Where a piece that begins at ``place`` ends."""
    if isinstance(piece, str):
        return place + len(piece) if text.startswith(piece, place) else None
    found = piece.pattern.match(text, place)
    return None if found is None else found.end()


def _after(piece: _Piece, text: str, place: int) -> int | None:
    """Where the first such piece from ``place`` on ends."""
    if isinstance(piece, str):
        start = text.find(piece, place)
        return None if start < 0 else start + len(piece)
    found = piece.pattern.search(text, place)
    return None if found is None else found.end()
