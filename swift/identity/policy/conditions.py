"""Conditions of policies: an operator, a key and expected values.

A condition holds when any of the values does, of a negated operator when none does. A request without the
key matches nothing, unless the operator is negated or ends in ``IfExists``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Protocol

from swift.identity.policy.patterns import Glob, Lookup, split_outside_variables

#: Values of JSON.
Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


class InvalidPolicy(ValueError):
    """A document is not a valid policy; its text gives the reason, ``value`` the part that is wrong."""

    def __init__(self, text: str, value: str = ""):
        super().__init__(text)
        self.value = value
        #: The element of the document, such as ``Statement[2].Action``; empty if it is not known.
        self.field = ""

    def in_field(self, name: str) -> InvalidPolicy:
        """Return the error as one of an element that contains the present one."""
        inner = self.field
        self.field = f"{name}{'' if not inner or inner.startswith('[') else '.'}{inner}"
        return self

    @property
    def located(self) -> str:
        """The reason with its element and the wrong value."""
        value = f": {self.value[:_SHOWN_MAX]!r}" if self.value else ""
        return f"{self.field}: {self}{value}" if self.field else f"{self}{value}"


_SHOWN_MAX = 100


def parse_texts(value: Json, what: str) -> list[str]:
    """Return a text or a list of texts as a list; raise ``InvalidPolicy``."""
    items = value if isinstance(value, list) else [value]
    texts = [item for item in items if isinstance(item, str) and item]
    if not items or len(texts) != len(items):
        raise InvalidPolicy(f"{what} must be a string or a list of strings")
    return texts


#: Condition keys about the caller, which its rights answer.
CALLER_KEYS = frozenset(
    (
        *("aws:username", "aws:userid", "aws:principaltype", "aws:principalarn", "aws:principalaccount"),
        "aws:tokenissuetime",
    )
)
#: Keys of requests for temporary credentials.
STS_KEYS = frozenset(("sts:externalid", "sts:rolesessionname"))
#: Valid condition keys in lower case; a name follows those that end with a slash.
CONDITION_KEYS = frozenset(
    key.lower()
    for key in (
        *("aws:SourceIp", "aws:SecureTransport", "aws:UserAgent", "aws:Referer", "aws:CurrentTime"),
        *("aws:EpochTime", "aws:username", "aws:userid", "aws:PrincipalArn", "aws:PrincipalAccount"),
        *("aws:SourceAccount", "aws:SourceArn", "s3:ObjectCreationOperation", "aws:TokenIssueTime"),
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


#: Returns a condition key in the form of lookups; raises ``InvalidPolicy``.
ValidateKey = Callable[[str], str]


def normalize_key(text: str) -> str:
    """Return a condition key in the form of lookups: in lower case up to a slash."""
    start, slash, name = text.partition("/")
    return start.lower() + slash + name


def validate_condition_key(text: str) -> str:
    """Return a condition key of requests for data; raise ``InvalidPolicy``."""
    start, slash, name = normalize_key(text).partition("/")
    if start + slash not in CONDITION_KEYS or (slash and not name):
        raise InvalidPolicy("Policy has an invalid condition key", text)
    return start + slash + name


def validate_identity_key(text: str) -> str:
    """Return a condition key of any request of a caller with rights; raise ``InvalidPolicy``."""
    key = text.lower()
    return key if key in STS_KEYS else validate_condition_key(text)


#: A claim of a web identity: the issuer without its scheme, a colon, and the name of the claim.
_is_claim_key = re.compile(
    r"(?!(?:aws|s3|sts|iam|swift):)[a-z0-9.-]+(?::\d{1,5})?(?:/[^\s:]*)?:[A-Za-z0-9_.-]+", re.ASCII
).fullmatch


def validate_trust_key(text: str) -> str:
    """Return a condition key of a request to assume a role; raise ``InvalidPolicy``."""
    key = normalize_key(text)
    if key in STS_KEYS or key in CONDITION_KEYS and key.startswith("aws:") or _is_claim_key(key):
        return key
    raise InvalidPolicy("Policy has an invalid condition key", text)


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
    parts = split_outside_variables(text, ":", 5)
    if len(parts) != 6:
        raise InvalidPolicy("Policy has an invalid ARN in a condition", text)
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
            raise InvalidPolicy("Policy has an invalid value in a condition", text)
        limit = requested

        def test(value: str, _lookup: Lookup) -> bool:
            number = parse(value)
            return number is not None and compare(number, limit)

        return test

    return make


def _bool_equals(text: str) -> ValueTest:
    requested = text.lower()
    if requested not in ("true", "false"):
        raise InvalidPolicy("Policy has an invalid value in a condition", text)
    return lambda value, _lookup: value.lower() == requested


#: Of ``::ffff:a.b.c.d`` these are not of the IPv4 address.
_MAPPED_BITS = 96


def parse_network(text: str) -> IPv4Network | IPv6Network:
    """Return a network; IPv4-mapped IPv6 becomes IPv4; raise ``InvalidPolicy``."""
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise InvalidPolicy("Policy has an invalid IP address in a condition", text)
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


def parse_condition(
    operator: str, key: str, texts: tuple[str, ...], validate_key: ValidateKey = validate_condition_key
) -> Condition:
    """Return the condition of a document; raise ``InvalidPolicy``."""
    name, quantifier = operator.lower(), ""
    for start, word in (("forallvalues:", "all"), ("foranyvalue:", "any")):
        if name.startswith(start):
            name, quantifier = name[len(start) :], word
            break
    if_exists = name.endswith(_IF_EXISTS)
    name = name.removesuffix(_IF_EXISTS)
    requested = validate_key(key)
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
