"""File of rules with the guarantees and limits of classes of requests.

    [[rule]]
    name = "backup"
    account = "AUTH_backup"
    guaranteed = { bytes = "50 MB", streams = 4 }
    greatest = { bytes = "200 MB", requests = 500 }

The conditions of a rule are ``account``, ``container`` (account/container), ``user`` and ``class``; a request
matches a rule if it meets all of them. ``"*"`` matches each value, and then every account (container, user)
is counted by itself. The first matching rule with a guarantee or a weight defines the class of a request;
every matching rule with ``greatest`` limits it. Parsing is pure; an error has file, line and rule.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from swift.base.errors import ConfigError
from swift.middleware.admission.amounts import NO_AMOUNTS, RESOURCES, Amounts, format_amount, parse_amount

#: Kinds of requests.
CLASSES = ("client", "s3", "replication", "audit")
#: Subjects of a rule.
_CONDITIONS = ("account", "container", "user", "class")
_KNOWN_KEYS = frozenset(("name", "guaranteed", "greatest", "weight", *_CONDITIONS))
ANY_VALUE = "*"
CLASS_PREFIX = "rule:"
LIMIT_PREFIX = "limit:"
_HEADER = re.compile(r"\s*\[\[\s*rule\s*\]\]")


@dataclass(frozen=True, slots=True)
class RequestProperties:
    """Properties of a request that rules match; empty where the request has none."""

    account: str
    container: str = ""
    user: str = ""
    kind: str = "client"

    def property_value(self, conditions: str) -> str:
        """Return the value that a condition of this name is compared with."""
        if conditions == "container":
            return f"{self.account}/{self.container}" if self.container else ""
        return self.kind if conditions == "class" else str(getattr(self, conditions))


@dataclass(frozen=True, slots=True)
class AdmissionRule:
    """One rule; ``conditions`` are (name, value) pairs."""

    name: str
    conditions: tuple[tuple[str, str], ...] = ()
    guaranteed: Amounts = NO_AMOUNTS
    greatest: Amounts = NO_AMOUNTS
    weight: float = 1.0
    #: The rule names a weight, so that requests it is for share a class.
    is_weighted: bool = False
    line: int = 0

    @property
    def defines_class(self) -> bool:
        """True if matching requests form a class of their own."""
        return self.is_weighted or self.guaranteed != NO_AMOUNTS

    def matches(self, facts: RequestProperties) -> bool:
        """Return True if a request meets all conditions."""
        for conditions, wanted in self.conditions:
            said = facts.property_value(conditions)
            if not said or (wanted not in (ANY_VALUE, said)):
                return False
        return True

    def key(self, facts: RequestProperties, prefix: str) -> str:
        """Return the key under which the use of a request is counted, as a class or for a limit."""
        each = [
            facts.property_value(conditions) for conditions, wanted in self.conditions if wanted == ANY_VALUE
        ]
        return "/".join((prefix + self.name, *each))


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """All rules of a file, in order."""

    rules: tuple[AdmissionRule, ...] = field(default=())

    def find_class(self, facts: RequestProperties) -> tuple[str, AdmissionRule | None]:
        """Return the key of a request's class and the rule that defines it.

        Without such a rule each account has a class of its own.
        """
        for rule in self.rules:
            if rule.defines_class and rule.matches(facts):
                return rule.key(facts, CLASS_PREFIX), rule
        return f"account:{facts.account}", None

    def matching_limits(self, facts: RequestProperties) -> Iterator[tuple[str, AdmissionRule]]:
        """Yield the keys and rules of the limits that apply to a request."""
        for rule in self.rules:
            if rule.greatest != NO_AMOUNTS and rule.matches(facts):
                yield rule.key(facts, LIMIT_PREFIX), rule

    def guarantees(self) -> dict[str, Amounts]:
        """Return the guaranteed amounts by class name."""
        return {
            CLASS_PREFIX + rule.name: rule.guaranteed for rule in self.rules if rule.guaranteed != NO_AMOUNTS
        }


def parse_rules(text: str, *, source: str, promisable: Amounts = NO_AMOUNTS) -> AdmissionRules:
    """Return the rules of a file; raises ``ConfigError`` naming file, line and rule.

    ``promisable`` is what guarantees may add up to; None where it is unknown.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # Its text has the line number.
        raise ConfigError(f"{source}: {error}")
    except RecursionError:
        raise ConfigError(f"{source}: its values are nested too deeply")
    unknown = sorted(set(document) - {"rule"})
    if unknown:
        raise ConfigError(
            f"{source}: line {_find_line(text, unknown[0])}: {unknown[0]!r} is not known; only rule is"
        )
    tables = document.get("rule", [])
    if not isinstance(tables, list):
        raise ConfigError(f"{source}: line {_find_line(text, 'rule')}: rules begin with [[rule]]")
    starts = [number for number, line in enumerate(text.splitlines(), 1) if _HEADER.match(line)]
    rules: list[AdmissionRule] = []
    for index, table in enumerate(tables):
        start = starts[index] if index < len(starts) else 1
        end = starts[index + 1] if index + 1 < len(starts) else None
        reader = _RuleReader(
            table, source, text.splitlines()[start - 1 : None if end is None else end - 1], start
        )
        rules.append(reader.parse_rule({rule.name for rule in rules}))
    _check_guaranteed_total(rules, promisable, source)
    return AdmissionRules(tuple(rules))


def _find_line(text: str, name: str) -> int:
    pattern = re.compile(rf"\s*\[*\s*\"?{re.escape(name)}\b")
    return next((n for n, line in enumerate(text.splitlines(), 1) if pattern.match(line)), 1)


def _check_guaranteed_total(rules: Sequence[AdmissionRule], promisable: Amounts, source: str) -> None:
    for resource in RESOURCES:
        most, total = getattr(promisable, resource), 0.0
        for rule in rules:
            total += getattr(rule.guaranteed, resource) or 0.0
            if most is not None and total > most:
                raise ConfigError(
                    f"{source}: line {rule.line}: rule {rule.name!r}: with it"
                    f" {format_amount(total, resource)} are guaranteed,"
                    f" and {format_amount(most, resource)} may be"
                )


class _RuleReader:
    """One table of the file."""

    def __init__(self, table: object, source: str, lines: Sequence[str], start: int):
        self._source = source
        self._lines = lines
        self._start = start
        self._name = ""
        if not isinstance(table, dict):
            raise self._error("a rule is a table", "rule")
        self._table: Mapping[str, object] = table

    def parse_rule(self, taken: set[str]) -> AdmissionRule:
        """Return the rule of this table; raises ``ConfigError``."""
        table = self._table
        self._name = self._parse_text("name", required=True)
        if self._name.startswith("@") or "/" in self._name:
            raise self._error("a name neither begins with @ nor has a /", "name")
        if self._name in taken:
            raise self._error("another rule has this name", "name")
        for key in table:
            if key not in _KNOWN_KEYS:
                raise self._error(f"{key!r} is not known; known are {', '.join(sorted(_KNOWN_KEYS))}", key)
        conditions = tuple((key, self._parse_text(key)) for key in _CONDITIONS if key in table)
        self._check_conditions(dict(conditions))
        guaranteed, greatest = self._parse_amounts("guaranteed"), self._parse_amounts("greatest")
        if guaranteed != NO_AMOUNTS and any(value == ANY_VALUE for _key, value in conditions):
            raise self._error(
                "a guarantee needs names: it cannot be given to each of any number", "guaranteed"
            )
        for resource in RESOURCES:
            low, high = getattr(guaranteed, resource), getattr(greatest, resource)
            if low is not None and high is not None and low > high:
                raise self._error(f"{resource} are guaranteed beyond the greatest", "guaranteed")
        rule = AdmissionRule(
            self._name,
            conditions,
            guaranteed,
            greatest,
            self._parse_weight(),
            "weight" in table,
            line=self._start,
        )
        if not rule.defines_class and greatest == NO_AMOUNTS:
            raise self._error("no limit: set guaranteed, greatest or weight", "name")
        return rule

    def _check_conditions(self, conditions: Mapping[str, str]) -> None:
        kind, container = conditions.get("class"), conditions.get("container")
        if kind is not None and kind not in CLASSES:
            raise self._error(f"class must be one of {', '.join(CLASSES)}, not {kind!r}", "class")
        if container is not None and container != ANY_VALUE and not all(container.partition("/")[::2]):
            raise self._error(f"container must be account/container, not {container!r}", "container")

    def _parse_weight(self) -> float:
        try:
            return parse_amount(self._table.get("weight", 1.0))
        except ValueError as error:
            raise self._error(f"weight {error}", "weight")

    def _parse_text(self, key: str, *, required: bool = False) -> str:
        value = self._table.get(key)
        if value is None and required:
            raise self._error(f"{key} is missing", "rule")
        if not isinstance(value, str) or not value:
            raise self._error(f"{key} must be a text, not {value!r}", key)
        return value

    def _parse_amounts(self, key: str) -> Amounts:
        table = self._table.get(key, {})
        if not isinstance(table, dict):
            raise self._error(f"{key} must be a table of {', '.join(RESOURCES)}", key)
        amounts: dict[str, float] = {}
        for resource, value in table.items():
            if resource not in RESOURCES:
                raise self._error(f"{key}: {resource!r} is not known; known are {', '.join(RESOURCES)}", key)
            try:
                amounts[resource] = parse_amount(value)
            except ValueError as error:
                raise self._error(f"{key}: {resource} {error}", key)
        return Amounts(**amounts)

    def _error(self, text: str, key: str) -> ConfigError:
        line = self._start + max(0, _find_line("\n".join(self._lines), key) - 1)
        named = f" rule {self._name!r}:" if self._name else " rule:"
        return ConfigError(f"{self._source}: line {line}:{named} {text}")
