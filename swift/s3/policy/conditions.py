"""Conditions and patterns of policies: ``*`` and ``?``, and variables such as ``${aws:username}``.

The value of a variable is never a pattern. A pattern is split at its stars once; matching searches the
pieces from left to right, so no pattern is slow.
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

    __slots__ = ("text", "variable_names", "_tokens", "_pieces", "_ignores_case")

    def __init__(self, text: str, *, has_variables: bool = True, ignore_case: bool = False):
        self.text = text
        self._ignores_case = ignore_case
        self._tokens = tuple(_tokenize(text, has_variables=has_variables))
        self.variable_names = tuple(str(token) for token in self._tokens if isinstance(token, _Variable))
        self._pieces = None if self.variable_names else _split_at_stars(self._tokens, ignore_case=ignore_case)

    @property
    def is_fixed(self) -> bool:
        """True if only one text matches."""
        return not self.variable_names and _AnyText not in self._tokens and _AnyCharacter not in self._tokens

    def matches(self, text: str, lookup: Lookup | None = None) -> bool:
        """Return True if a text matches; False if a variable of the pattern has no value."""
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
    first, *rest = pieces
    position = _match_at(first, text, 0)
    if position is None:
        return False
    if not rest:
        return position == len(text)
    for piece in rest[:-1]:
        position = _find_from(piece, text, position)
        if position is None:
            return False
    last = rest[-1]
    start = len(text) - (len(last) if isinstance(last, str) else last.size)
    return start >= position and _match_at(last, text, start) is not None


def _match_at(piece: _PatternPiece, text: str, position: int) -> int | None:
    """Return the end of a piece that begins at ``position``."""
    if isinstance(piece, str):
        return position + len(piece) if text.startswith(piece, position) else None
    found = piece.pattern.match(text, position)
    return None if found is None else found.end()


def _find_from(piece: _PatternPiece, text: str, position: int) -> int | None:
    """Return the end of the first such piece from ``position`` on."""
    if isinstance(piece, str):
        start = text.find(piece, position)
        return None if start < 0 else start + len(piece)
    found = piece.pattern.search(text, position)
    return None if found is None else found.end()


# --- conditions ---------------------------------------------------------------------------------------
# A condition is an operator, a key and values. It holds when any of the values does, of a negated
# operator when none does. What a request does not say matches nothing, unless the operator is negated
# or ends in ``IfExists``.


class InvalidPolicy(ValueError):
    """A document is not a valid policy; its text gives the reason."""


#: Valid condition keys in lower case; a name follows those that end with a slash.
CONDITION_KEYS = frozenset(
    key.lower()
    for key in (
        *("aws:SourceIp", "aws:SecureTransport", "aws:UserAgent", "aws:Referer", "aws:CurrentTime"),
        *("aws:EpochTime", "aws:username", "aws:userid", "aws:PrincipalArn", "aws:PrincipalAccount"),
        *("aws:SourceAccount", "aws:SourceArn", "s3:ObjectCreationOperation"),
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
RESTRICTING_KEYS = frozenset(
    (
        *("aws:sourceip", "aws:username", "aws:userid", "aws:principalarn", "aws:principalaccount"),
        *("aws:sourceaccount", "aws:sourcearn"),
    )
)


class PolicyContext(Protocol):
    """The values of a request by condition key."""

    def values(self, key: str) -> Sequence[str] | None:
        """Return the values of a key, None if it has none; the key is in lower case up to a slash."""


def validate_condition_key(text: str) -> str:
    """Return a condition key in the form of lookups; raise ``InvalidPolicy``."""
    start, slash, name = text.partition("/")
    key = start.lower() + slash
    if key not in CONDITION_KEYS or (slash and not name):
        raise InvalidPolicy("Policy has an invalid condition key")
    return key + name


# --- comparing ----------------------------------------------------------------------------------------

ValueTest = Callable[[str, Lookup], bool]
_is_number = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?", re.ASCII).fullmatch


def _string_equals(text: str) -> ValueTest:
    glob = Glob(_escape_wildcards(text))
    return glob.matches


def _escape_wildcards(text: str) -> str:
    """Return a text whose stars and question marks match literally; variables are still replaced."""
    return re.sub(r"\$\{[^{}]*\}|[*?]", lambda m: m[0] if len(m[0]) > 1 else f"${{{m[0]}}}", text)


def _string_equals_ignore_case(text: str) -> ValueTest:
    return Glob(_escape_wildcards(text), ignore_case=True).matches


def _string_like(text: str) -> ValueTest:
    return Glob(text).matches


def _arn_like(text: str) -> ValueTest:
    """Return a test that matches each of the six parts of an ARN separately."""
    parts = text.split(":", 5)
    if len(parts) != 6:
        raise InvalidPolicy("Policy has an invalid ARN in a condition")
    globs = [Glob(part) for part in parts]

    def test(value: str, lookup: Lookup) -> bool:
        found = value.split(":", 5)
        return len(found) == 6 and all(
            glob.matches(part, lookup) for glob, part in zip(globs, found, strict=True)
        )

    return test


def _parse_number(text: str) -> float | None:
    return float(text) if _is_number(text) else None


def _parse_date(text: str) -> float | None:
    """Return the Unix second of an ISO 8601 date or of a number of seconds; None for other text."""
    if _is_number(text):
        return float(text)
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _comparison(
    parse: Callable[[str], float | None], compare: Callable[[float, float], bool]
) -> Callable[[str], ValueTest]:
    def make(text: str) -> ValueTest:
        requested = parse(text)
        if requested is None:
            raise InvalidPolicy("Policy has an invalid value in a condition")
        limit = requested

        def test(value: str, _lookup: Lookup) -> bool:
            number = parse(value)
            return number is not None and compare(number, limit)

        return test

    return make


def _bool_equals(text: str) -> ValueTest:
    requested = text.lower()
    if requested not in ("true", "false"):
        raise InvalidPolicy("Policy has an invalid value in a condition")
    return lambda value, _lookup: value.lower() == requested


#: Of ``::ffff:a.b.c.d`` these are not of the IPv4 address.
_MAPPED_BITS = 96


def parse_network(text: str) -> IPv4Network | IPv6Network:
    """Return a network; IPv4-mapped IPv6 becomes IPv4; raise ``InvalidPolicy``."""
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise InvalidPolicy("Policy has an invalid IP address in a condition")
    if isinstance(network, IPv6Network) and network.prefixlen >= _MAPPED_BITS:
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:
            return IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))
    return network


def _ip_in_network(text: str) -> ValueTest:
    network = parse_network(text)

    def test(value: str, _lookup: Lookup) -> bool:
        try:
            found = ip_address(value.partition("%")[0])
        except ValueError:
            return False
        if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        return found in network

    return test


#: Operator in lower case → function that makes a value's test, and True if the operator is negated.
OPERATORS: dict[str, tuple[Callable[[str], ValueTest], bool]] = {
    "stringequals": (_string_equals, False),
    "stringnotequals": (_string_equals, True),
    "stringequalsignorecase": (_string_equals_ignore_case, False),
    "stringnotequalsignorecase": (_string_equals_ignore_case, True),
    "stringlike": (_string_like, False),
    "stringnotlike": (_string_like, True),
    "arnequals": (_arn_like, False),
    "arnlike": (_arn_like, False),
    "arnnotequals": (_arn_like, True),
    "arnnotlike": (_arn_like, True),
    "bool": (_bool_equals, False),
    "binaryequals": (_string_equals, False),
    "ipaddress": (_ip_in_network, False),
    "notipaddress": (_ip_in_network, True),
    **{
        f"{kind}{name}": (_comparison(parse, compare), name == "notequals")
        for kind, parse in (("numeric", _parse_number), ("date", _parse_date))
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
    """An operator, a condition key and the expected values."""

    operator: str
    key: str
    expected_values: tuple[str, ...]
    tests: tuple[ValueTest, ...]
    negated: bool = False
    if_exists: bool = False
    #: ``all`` or ``any`` of a request's values; empty: the key has one.
    quantifier: str = ""

    def holds(self, context: PolicyContext, lookup: Lookup) -> bool:
        """Return True if a request meets the condition."""
        values = context.values(self.key)
        if self.operator == "null":
            return any((values is None) == (text.lower() == "true") for text in self.expected_values)
        if values is None:
            return self.if_exists or self.quantifier == "all" or (self.negated and not self.quantifier)
        found = [any(test(value, lookup) for test in self.tests) != self.negated for value in values]
        return (
            all(found) if self.quantifier == "all" or (self.negated and not self.quantifier) else any(found)
        )


def parse_condition(operator: str, key: str, texts: tuple[str, ...]) -> Condition:
    """Return the condition of a document; raise ``InvalidPolicy``."""
    name, quantifier = operator.lower(), ""
    for start, word in (("forallvalues:", "all"), ("foranyvalue:", "any")):
        if name.startswith(start):
            name, quantifier = name[len(start) :], word
            break
    if_exists = name.endswith(_IF_EXISTS)
    name = name.removesuffix(_IF_EXISTS)
    requested = validate_condition_key(key)
    if not texts:
        raise InvalidPolicy("Policy has a condition without values")
    if name == "null":
        if if_exists or quantifier or any(text.lower() not in ("true", "false") for text in texts):
            raise InvalidPolicy("Policy has an invalid value in a condition")
        return Condition(name, requested, texts, ())
    if name not in OPERATORS:
        raise InvalidPolicy(f"Invalid Condition type : {operator}")
    make, negated = OPERATORS[name]
    tests = tuple(make(text) for text in texts)
    return Condition(name, requested, texts, tests, negated, if_exists, quantifier)
