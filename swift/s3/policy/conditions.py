"""Patterns of policies: ``*`` and ``?``, and variables such as ``${aws:username}``.

What a variable stands for is never a pattern. A pattern is cut at its stars once; matching looks for the
pieces from left to right, so that no pattern makes it slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Protocol

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
        """True if it stands for one text only."""
        return not self.names and _Star not in self._tokens and _One not in self._tokens

    def matches(self, text: str, lookup: Lookup | None = None) -> bool:
        """Return True if a text is of this pattern; never if a variable in it has no value."""
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
    """Return the pieces between the stars."""
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
    """Return the end of a piece that begins at ``place``."""
    if isinstance(piece, str):
        return place + len(piece) if text.startswith(piece, place) else None
    found = piece.pattern.match(text, place)
    return None if found is None else found.end()


def _after(piece: _Piece, text: str, place: int) -> int | None:
    """Return the end of the first such piece from ``place`` on."""
    if isinstance(piece, str):
        start = text.find(piece, place)
        return None if start < 0 else start + len(piece)
    found = piece.pattern.search(text, place)
    return None if found is None else found.end()


# --- conditions ---------------------------------------------------------------------------------------
# A condition is an operator, a key and values. It holds when any of the values does, of a negated
# operator when none does. What a request does not say matches nothing, unless the operator is negated
# or ends in ``IfExists``.


class BadPolicy(ValueError):
    """A document is no policy; its text says why."""


#: Keys that may be asked for, in lower case; what ends with a slash has a name behind it.
KEYS = frozenset(
    key.lower()
    for key in (
        *("aws:SourceIp", "aws:SecureTransport", "aws:UserAgent", "aws:Referer", "aws:CurrentTime"),
        *("aws:EpochTime", "aws:username", "aws:userid", "aws:PrincipalArn", "aws:PrincipalAccount"),
        *("aws:PrincipalType", "s3:prefix", "s3:delimiter", "s3:max-keys", "s3:x-amz-acl"),
        *("s3:x-amz-grant-read", "s3:x-amz-grant-write", "s3:x-amz-grant-read-acp"),
        *("s3:x-amz-grant-write-acp", "s3:x-amz-grant-full-control", "s3:x-amz-copy-source"),
        *("s3:x-amz-metadata-directive", "s3:x-amz-storage-class", "s3:x-amz-server-side-encryption"),
        *("s3:x-amz-server-side-encryption-customer-algorithm", "s3:x-amz-content-sha256"),
        *("s3:VersionId", "s3:authType", "s3:signatureversion", "s3:signatureAge"),
        *("s3:LocationConstraint", "s3:ExistingObjectTag/", "s3:RequestObjectTag/"),
        *("s3:RequestObjectTagKeys", "s3:if-match", "s3:if-none-match", "s3:ResourceAccount"),
    )
)
#: Keys that restrict a statement for all principals, if their values are fixed.
NARROW = frozenset(("aws:sourceip", "aws:username", "aws:userid", "aws:principalarn", "aws:principalaccount"))


class PolicyContext(Protocol):
    """The policy context: values of a request by condition key."""

    def values(self, key: str) -> Sequence[str] | None:
        """Return the values of a key (lower case.

        The name behind a slash as it stands); None where it has none.
        """


def known_key(text: str) -> str:
    """Return a key as it is asked for; raise ``BadPolicy``."""
    start, slash, name = text.partition("/")
    key = start.lower() + slash
    if key not in KEYS or (slash and not name):
        raise BadPolicy("Policy has an invalid condition key")
    return key + name


# --- comparing ----------------------------------------------------------------------------------------

Test = Callable[[str, Lookup], bool]
_duration = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?", re.ASCII).fullmatch


def _same(text: str) -> Test:
    glob = Glob(_literal(text))
    return glob.matches


def _literal(text: str) -> str:
    """Return a text whose stars are no pattern; its variables are still replaced."""
    return re.sub(r"\$\{[^{}]*\}|[*?]", lambda m: m[0] if len(m[0]) > 1 else f"${{{m[0]}}}", text)


def _same_folded(text: str) -> Test:
    return Glob(_literal(text), folded=True).matches


def _like(text: str) -> Test:
    return Glob(text).matches


def _like_arn(text: str) -> Test:
    """Return each of the six parts of an ARN by itself."""
    parts = text.split(":", 5)
    if len(parts) != 6:
        raise BadPolicy("Policy has an invalid ARN in a condition")
    globs = [Glob(part) for part in parts]

    def test(value: str, lookup: Lookup) -> bool:
        found = value.split(":", 5)
        return len(found) == 6 and all(
            glob.matches(part, lookup) for glob, part in zip(globs, found, strict=True)
        )

    return test


def _number_of(text: str) -> float | None:
    return float(text) if _duration(text) else None


def _moment_of(text: str) -> float | None:
    """Return Unix seconds of a date as ISO 8601 writes it, or of a number of them."""
    if _duration(text):
        return float(text)
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _ordered(
    parse: Callable[[str], float | None], compare: Callable[[float, float], bool]
) -> Callable[[str], Test]:
    def make(text: str) -> Test:
        requested = parse(text)
        if requested is None:
            raise BadPolicy("Policy has an invalid value in a condition")
        limit = requested

        def test(value: str, _lookup: Lookup) -> bool:
            number = parse(value)
            return number is not None and compare(number, limit)

        return test

    return make


def _truth(text: str) -> Test:
    requested = text.lower()
    if requested not in ("true", "false"):
        raise BadPolicy("Policy has an invalid value in a condition")
    return lambda value, _lookup: value.lower() == requested


#: Of ``::ffff:a.b.c.d`` these are not of the IPv4 address.
_MAPPED_BITS = 96


def network_of(text: str) -> IPv4Network | IPv6Network:
    """Return a network, IPv4 written as IPv6 as IPv4; raise ``BadPolicy``."""
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise BadPolicy("Policy has an invalid IP address in a condition")
    if isinstance(network, IPv6Network) and network.prefixlen >= _MAPPED_BITS:
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:
            return IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))
    return network


def _address(text: str) -> Test:
    network = network_of(text)

    def test(value: str, _lookup: Lookup) -> bool:
        try:
            found = ip_address(value.partition("%")[0])
        except ValueError:
            return False
        if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        return found in network

    return test


#: Operator in lower case → what makes a test of a value, and whether none may hold.
OPERATORS: dict[str, tuple[Callable[[str], Test], bool]] = {
    "stringequals": (_same, False),
    "stringnotequals": (_same, True),
    "stringequalsignorecase": (_same_folded, False),
    "stringnotequalsignorecase": (_same_folded, True),
    "stringlike": (_like, False),
    "stringnotlike": (_like, True),
    "arnequals": (_like_arn, False),
    "arnlike": (_like_arn, False),
    "arnnotequals": (_like_arn, True),
    "arnnotlike": (_like_arn, True),
    "bool": (_truth, False),
    "binaryequals": (_same, False),
    "ipaddress": (_address, False),
    "notipaddress": (_address, True),
    **{
        f"{kind}{name}": (_ordered(parse, compare), name == "notequals")
        for kind, parse in (("numeric", _number_of), ("date", _moment_of))
        for name, compare in (
            ("equals", lambda a, b: a == b),
            ("notequals", lambda a, b: a == b),
            ("lessthan", lambda a, b: a < b),
            ("lessthanequals", lambda a, b: a <= b),
            ("greaterthan", lambda a, b: a > b),
            ("greaterthanequals", lambda a, b: a >= b),
        )
    },
}
_IF_EXISTS = "ifexists"


@dataclass(frozen=True, slots=True)
class Condition:
    """An operator, a key and what its values must be."""

    operator: str
    key: str
    texts: tuple[str, ...]
    tests: tuple[Test, ...]
    negated: bool = False
    if_exists: bool = False
    #: ``all`` or ``any`` of a request's values; empty: the key has one.
    quantifier: str = ""

    def holds(self, context: PolicyContext, lookup: Lookup) -> bool:
        """Return True if a request meets it."""
        values = context.values(self.key)
        if self.operator == "null":
            return any((values is None) == (text.lower() == "true") for text in self.texts)
        if values is None:
            return self.if_exists or self.quantifier == "all" or (self.negated and not self.quantifier)
        found = [any(test(value, lookup) for test in self.tests) != self.negated for value in values]
        return (
            all(found) if self.quantifier == "all" or (self.negated and not self.quantifier) else any(found)
        )


def condition_of(operator: str, key: str, texts: tuple[str, ...]) -> Condition:
    """Return a condition as a document has it; raise ``BadPolicy``."""
    name, quantifier = operator.lower(), ""
    for start, word in (("forallvalues:", "all"), ("foranyvalue:", "any")):
        if name.startswith(start):
            name, quantifier = name[len(start) :], word
            break
    if_exists = name.endswith(_IF_EXISTS)
    name = name.removesuffix(_IF_EXISTS)
    requested = known_key(key)
    if not texts:
        raise BadPolicy("Policy has a condition without values")
    if name == "null":
        if if_exists or quantifier or any(text.lower() not in ("true", "false") for text in texts):
            raise BadPolicy("Policy has an invalid value in a condition")
        return Condition(name, requested, texts, ())
    if name not in OPERATORS:
        raise BadPolicy(f"Invalid Condition type : {operator}")
    make, negated = OPERATORS[name]
    tests = tuple(make(text) for text in texts)
    return Condition(name, requested, texts, tests, negated, if_exists, quantifier)
