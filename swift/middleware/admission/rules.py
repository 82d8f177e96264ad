"""File of rules with the guarantees and limits of classes of requests.

    [[rule]]
    name = "backup"
    account = "AUTH_backup"
    guaranteed = { bytes = "50 MB", streams = 4 }
    greatest = { bytes = "200 MB", requests = 500 }

A rule names whom it is for by ``account``, ``container`` (account/container), ``user`` and ``class``; all
that it names must hold. ``"*"`` stands for each: every account (container, user) is then counted for itself.
Of the rules that a request meets the first with a guarantee or a weight gives its class, and every one with a
greatest rate bounds it. Reading is pure; an error names the file, the line and the rule.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from swift.base.errors import ConfigError
from swift.middleware.admission.amounts import NOTHING, RESOURCES, Amounts, parse_amount, shown

#: What a request may be.
CLASSES = ("client", "s3", "replication", "audit")
#: Whom a rule may be for.
_WHOM = ("account", "container", "user", "class")
_KNOWN = frozenset(("name", "guaranteed", "greatest", "weight", *_WHOM))
EACH = "*"
LANE = "rule:"
LIMIT = "limit:"
_HEADER = re.compile(r"\s*\[\[\s*rule\s*\]\]")


@dataclass(frozen=True, slots=True)
class AdmissionFacts:
    """Properties of a request that rules match; empty where the request has none."""

    account: str
    container: str = ""
    user: str = ""
    kind: str = "client"

    def said(self, whom: str) -> str:
        """Return the value that a rule's condition of this name is compared with."""
        if whom == "container":
            return f"{self.account}/{self.container}" if self.container else ""
        return self.kind if whom == "class" else str(getattr(self, whom))


@dataclass(frozen=True, slots=True)
class AdmissionRule:
    """One rule; ``whom`` has its conditions as (name, value) pairs."""

    name: str
    whom: tuple[tuple[str, str], ...] = ()
    guaranteed: Amounts = NOTHING
    greatest: Amounts = NOTHING
    weight: float = 1.0
    #: The rule names a weight, so that requests it is for share a class.
    is_weighted: bool = False
    line: int = 0

    @property
    def makes_lane(self) -> bool:
        """True if requests that meet it have a share of their own."""
        return self.is_weighted or self.guaranteed != NOTHING

    def holds(self, facts: AdmissionFacts) -> bool:
        """Return True if a request meets it."""
        for whom, wanted in self.whom:
            said = facts.said(whom)
            if not said or (wanted not in (EACH, said)):
                return False
        return True

    def key(self, facts: AdmissionFacts, prefix: str) -> str:
        """Under which name its use is counted, as a class (``LANE``) or as what is bounded (``LIMIT``)."""
        each = [facts.said(whom) for whom, wanted in self.whom if wanted == EACH]
        return "/".join((prefix + self.name, *each))


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """All rules of a file, in order."""

    rules: tuple[AdmissionRule, ...] = field(default=())

    def class_of(self, facts: AdmissionFacts) -> tuple[str, AdmissionRule | None]:
        """Return the class of a request: its key, and the rule that says so. Without one, each account has
        its
        own."""
        for rule in self.rules:
            if rule.makes_lane and rule.holds(facts):
                return rule.key(facts, LANE), rule
        return f"account:{facts.account}", None

    def limits_of(self, facts: AdmissionFacts) -> Iterator[tuple[str, AdmissionRule]]:
        """Yield the rules that bound a request, with the names under which its use is counted."""
        for rule in self.rules:
            if rule.greatest != NOTHING and rule.holds(facts):
                yield rule.key(facts, LIMIT), rule

    def guarantees(self) -> dict[str, Amounts]:
        """Return the guaranteed amounts by class name."""
        return {LANE + rule.name: rule.guaranteed for rule in self.rules if rule.guaranteed != NOTHING}


def parse_rules(text: str, *, source: str, promisable: Amounts = NOTHING) -> AdmissionRules:
    """Return the rules of a file; raises ``ConfigError`` naming file, line and rule.

    ``promisable`` is what guarantees may add up to; None where it is unknown.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # Its text says the line.
        raise ConfigError(f"{source}: {error}")
    except RecursionError:
        raise ConfigError(f"{source}: its values are nested too deeply")
    unknown = sorted(set(document) - {"rule"})
    if unknown:
        raise ConfigError(
            f"{source}: line {_line_of(text, unknown[0])}: {unknown[0]!r} is not known; only rule is"
        )
    tables = document.get("rule", [])
    if not isinstance(tables, list):
        raise ConfigError(f"{source}: line {_line_of(text, 'rule')}: rules begin with [[rule]]")
    starts = [number for number, line in enumerate(text.splitlines(), 1) if _HEADER.match(line)]
    rules: list[AdmissionRule] = []
    for index, table in enumerate(tables):
        start = starts[index] if index < len(starts) else 1
        end = starts[index + 1] if index + 1 < len(starts) else None
        reader = _Reader(
            table, source, text.splitlines()[start - 1 : None if end is None else end - 1], start
        )
        rules.append(reader.rule({rule.name for rule in rules}))
    _check_sum(rules, promisable, source)
    return AdmissionRules(tuple(rules))


def _line_of(text: str, name: str) -> int:
    pattern = re.compile(rf"\s*\[*\s*\"?{re.escape(name)}\b")
    return next((n for n, line in enumerate(text.splitlines(), 1) if pattern.match(line)), 1)


def _check_sum(rules: Sequence[AdmissionRule], promisable: Amounts, source: str) -> None:
    for resource in RESOURCES:
        most, total = getattr(promisable, resource), 0.0
        for rule in rules:
            total += getattr(rule.guaranteed, resource) or 0.0
            if most is not None and total > most:
                raise ConfigError(
                    f"{source}: line {rule.line}: rule {rule.name!r}: with it {shown(total, resource)} are"
                    f" guaranteed, and {shown(most, resource)} may be"
                )


class _Reader:
    """One table of the file."""

    def __init__(self, table: object, source: str, lines: Sequence[str], start: int):
        self._source = source
        self._lines = lines
        self._start = start
        self._name = ""
        if not isinstance(table, dict):
            raise self._error("a rule is a table", "rule")
        self._table: Mapping[str, object] = table

    def rule(self, taken: set[str]) -> AdmissionRule:
        """Return the rule of this table; raises ``ConfigError``."""
        table = self._table
        self._name = self._text("name", required=True)
        if self._name.startswith("@") or "/" in self._name:
            raise self._error("a name neither begins with @ nor has a /", "name")
        if self._name in taken:
            raise self._error("another rule has this name", "name")
        for key in table:
            if key not in _KNOWN:
                raise self._error(f"{key!r} is not known; known are {', '.join(sorted(_KNOWN))}", key)
        whom = tuple((key, self._text(key)) for key in _WHOM if key in table)
        self._check_whom(dict(whom))
        guaranteed, greatest = self._amounts("guaranteed"), self._amounts("greatest")
        if guaranteed != NOTHING and any(value == EACH for _key, value in whom):
            raise self._error(
                "a guarantee needs names: it cannot be given to each of any number", "guaranteed"
            )
        for resource in RESOURCES:
            low, high = getattr(guaranteed, resource), getattr(greatest, resource)
            if low is not None and high is not None and low > high:
                raise self._error(f"{resource} are guaranteed beyond the greatest", "guaranteed")
        rule = AdmissionRule(
            self._name, whom, guaranteed, greatest, self._weight(), "weight" in table, line=self._start
        )
        if not rule.makes_lane and greatest == NOTHING:
            raise self._error("it says nothing: give it guaranteed, greatest or weight", "name")
        return rule

    def _check_whom(self, whom: Mapping[str, str]) -> None:
        kind, container = whom.get("class"), whom.get("container")
        if kind is not None and kind not in CLASSES:
            raise self._error(f"class must be one of {', '.join(CLASSES)}, not {kind!r}", "class")
        if container is not None and container != EACH and not all(container.partition("/")[::2]):
            raise self._error(f"container must be account/container, not {container!r}", "container")

    def _weight(self) -> float:
        try:
            return parse_amount(self._table.get("weight", 1.0))
        except ValueError as error:
            raise self._error(f"weight {error}", "weight")

    def _text(self, key: str, *, required: bool = False) -> str:
        value = self._table.get(key)
        if value is None and required:
            raise self._error(f"{key} is missing", "rule")
        if not isinstance(value, str) or not value:
            raise self._error(f"{key} must be a text, not {value!r}", key)
        return value

    def _amounts(self, key: str) -> Amounts:
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
        line = self._start + max(0, _line_of("\n".join(self._lines), key) - 1)
        named = f" rule {self._name!r}:" if self._name else " rule:"
        return ConfigError(f"{self._source}: line {line}:{named} {text}")
