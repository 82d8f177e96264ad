"""A second evaluator of policies, written from AWS's published rules: slow, plain, and on the JSON itself.

It shares no code with ``swift/identity``. Sources: "Policy evaluation logic", "IAM JSON policy elements"
(Principal, NotPrincipal, Action, Resource, Condition, variables) and "Condition operators" of the IAM User
Guide. Beyond AWS it knows the cluster's own rules: owners and operators, groups as principals, and buckets of
other accounts by ``ACCOUNT:BUCKET``.
"""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

# --- texts --------------------------------------------------------------------------------------------

MANY, ONE = object(), object()


def tokens_of(pattern: str, values: dict[str, list[str]], *, variables: bool, wildcards: bool = True):
    """Return a list of characters, MANY and ONE; None if a variable has no value."""
    found: list[Any] = []
    i = 0
    while i < len(pattern):
        end = pattern.find("}", i)
        inner = pattern[i + 2 : end] if end >= 0 else ""
        if variables and pattern.startswith("${", i) and end >= 0 and "{" not in inner:
            name = inner.strip()
            if name in ("*", "?", "$"):
                found.append(name)
            else:
                present = values.get(lookup_name(name))
                if present is None or len(present) != 1:
                    return None
                found.extend(present[0])
            i = end + 1
            continue
        character = pattern[i]
        if wildcards and character == "*":
            found.append(MANY)
        elif wildcards and character == "?":
            found.append(ONE)
        else:
            found.append(character)
        i += 1
    return found


def lookup_name(key: str) -> str:
    """Return a key as a context has it: only the name of a tag keeps its case."""
    if "/" not in key:
        return key.lower()
    at = key.index("/")
    return key[:at].lower() + key[at:]


def fits(tokens, text: str) -> bool:
    """Match by recursion over both, each pair once."""
    if tokens is None:
        return False
    known: dict[tuple[int, int], bool] = {}

    def from_here(i: int, j: int) -> bool:
        if (i, j) not in known:
            if i == len(tokens):
                known[i, j] = j == len(text)
            elif tokens[i] is MANY:
                known[i, j] = from_here(i + 1, j) or (j < len(text) and from_here(i, j + 1))
            else:
                known[i, j] = j < len(text) and tokens[i] in (ONE, text[j]) and from_here(i + 1, j + 1)
        return known[i, j]

    return from_here(0, 0)


def listed(value) -> list:
    return value if isinstance(value, list) else [value]


# --- conditions ---------------------------------------------------------------------------------------


def number(text: str):
    digits = text.removeprefix("-").replace(".", "", 1)
    return Decimal(text) if digits and digits.isascii() and digits.isdigit() else None


def moment(text: str):
    if number(text) is not None:
        return number(text)
    for shape in ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d"):
        try:
            since = datetime.strptime(text, shape).replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
            return Decimal(since // timedelta(seconds=1))
        except ValueError:
            continue
    return None


def bits_of(text: str) -> str | None:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            packed = socket.inet_pton(family, text)
        except OSError:
            continue
        bits = "".join(f"{byte:08b}" for byte in packed)
        # An IPv4 address is the mapped IPv6 address.
        return bits if len(bits) == 128 else "0" * 80 + "1" * 16 + bits
    return None


def in_network(address: str, network: str) -> bool:
    host, _, length = network.partition("/")
    found, wanted = bits_of(address), bits_of(host)
    if found is None or wanted is None:
        return False
    size = 128 if not length else int(length) + (0 if ":" in host else 96)
    return found[:size] == wanted[:size]


COMPARISONS = {
    "Equals": lambda a, b: a == b,
    "LessThan": lambda a, b: a < b,
    "LessThanEquals": lambda a, b: a <= b,
    "GreaterThan": lambda a, b: a > b,
    "GreaterThanEquals": lambda a, b: a >= b,
}


def one_matches(operator: str, wanted: str, said: str, values, *, variables: bool) -> bool:
    """Compare one value by an operator without Not, IfExists and quantifier."""

    def tokens(text, wildcards):
        return tokens_of(text, values, variables=variables, wildcards=wildcards)

    if operator == "StringEquals":
        return fits(tokens(wanted, False), said)
    if operator == "StringEqualsIgnoreCase":
        found = tokens(wanted, False)
        return found is not None and "".join(found).lower() == said.lower()
    if operator == "StringLike":
        return fits(tokens(wanted, True), said)
    if operator in ("ArnEquals", "ArnLike"):
        ours, theirs = wanted.split(":", 5), said.split(":", 5)
        if len(theirs) != 6:
            return False
        return all(fits(tokens(a, True), b) for a, b in zip(ours, theirs, strict=True))
    if operator == "Bool":
        return wanted.lower() == said.lower()
    if operator == "IpAddress":
        return in_network(said, wanted)
    for kind, parse in (("Numeric", number), ("Date", moment)):
        if operator.startswith(kind):
            a, b = parse(said), parse(wanted)
            return a is not None and COMPARISONS[operator.removeprefix(kind)](a, b)
    raise AssertionError(operator)


def condition_holds(operator: str, key: str, wanted: list, values, *, variables: bool) -> bool:
    said = values.get(lookup_name(key))
    wanted = [str(one).lower() if isinstance(one, bool) else str(one) for one in wanted]
    if operator == "Null":
        return any((one == "true") == (said is None) for one in wanted)
    quantifier, _, rest = operator.rpartition(":")
    bare = rest.removesuffix("IfExists")
    if said is None:
        if rest != bare or quantifier == "ForAllValues":
            return True
        return not quantifier and ("Not" in bare)
    negated = "Not" in bare
    positive = bare.replace("Not", "", 1)
    results = []
    for value in said:
        matched = any(one_matches(positive, one, value, values, variables=variables) for one in wanted)
        results.append(matched != negated)
    return all(results) if quantifier == "ForAllValues" else any(results)


# --- statements ---------------------------------------------------------------------------------------


def action_matches(statement, action: str) -> bool:
    for element, expected in (("Action", True), ("NotAction", False)):
        if element in statement:
            hit = any(
                fits(tokens_of(one.lower(), {}, variables=False), action.lower())
                for one in listed(statement[element])
            )
            return hit == expected
    raise AssertionError("no action")


def split_resource(text: str) -> tuple[str, str]:
    """Return the account and the path of an S3 ARN in a policy: the caller's own account is empty."""
    path = text.removeprefix("arn:aws:s3:::")
    depth = 0
    for i, character in enumerate(path):
        if path.startswith("${", i):
            depth += 1
        elif character == "}" and depth:
            depth -= 1
        elif depth == 0 and character == "/":
            return "", path
        elif depth == 0 and character == ":":
            return path[:i], path[i + 1 :]
    return ("*" if path == "*" else ""), path


def resource_matches(statement, request, values, *, kind: str, own: str, variables: bool) -> bool:
    if kind == "trust":
        return True
    path = request["bucket"] + ("/" + request["key"] if request["key"] else "")
    for element, expected in (("Resource", True), ("NotResource", False)):
        if element not in statement:
            continue
        hit = False
        for one in listed(statement[element]):
            if one == "*":
                hit = True
            elif request["arn"]:
                is_record = not one.startswith("arn:aws:s3:::")
                hit |= is_record and fits(tokens_of(one, values, variables=variables), request["arn"])
            elif one.startswith("arn:aws:s3:::"):
                account, pattern = split_resource(one)
                if kind == "bucket":
                    account, pattern = "*", one.removeprefix("arn:aws:s3:::")
                here = account == "*" or request["account"] == (account or own)
                hit |= here and fits(tokens_of(pattern, values, variables=variables), path)
        return hit == expected
    raise AssertionError("no resource")


def kinds_of_naming(element, caller) -> set[str]:
    """Return the ways in which a Principal element names a caller: all, account, user, role and so on."""
    if element == "*":
        return {"all"}
    ways = set()
    tenant = caller["tenant"]
    for kind, names in element.items():
        for name in listed(names):
            if kind == "Federated":
                short = name.rpartition("oidc-provider/")[2]
                ways |= {"provider"} if caller["provider"] and short == caller["provider"] else set()
                continue
            if name == "*":
                ways.add("all")
            elif caller["provider"]:
                continue
            elif name in (f"arn:aws:iam::{tenant}:root", tenant, f"AUTH_{tenant}"):
                ways.add("account")
            elif caller["session"] and name == f"arn:aws:iam::{tenant}:role/{caller['role']}":
                ways.add("role")
            elif (
                caller["session"]
                and name == f"arn:aws:sts::{tenant}:assumed-role/{caller['role']}/{caller['session']}"
            ):
                ways.add("session")
            elif caller["user"] and name in (
                f"{tenant}:{caller['user']}",
                f"arn:aws:iam::{tenant}:user/{caller['user']}",
                *(f"arn:aws:iam::{tenant}:group/{group}" for group in caller["groups"]),
            ):
                ways.add("user")
    return ways


def naming(statement, caller, *, kind: str) -> str:
    """Return how a statement applies to a caller: ``itself``, ``account`` or empty for not at all."""
    if kind == "identity":
        return "itself"
    allows = statement["Effect"] == "Allow"
    if "Principal" in statement:
        ways = kinds_of_naming(statement["Principal"], caller)
        if allows and caller["provider"]:
            # A web identity is allowed by its provider only.
            ways -= {"all"}
        if ways - {"account"}:
            return "itself"
        return "account" if ways else ""
    ways = kinds_of_naming(statement["NotPrincipal"], caller)
    if "all" in ways:
        return ""
    if allows or caller["provider"]:
        return "" if ways else "itself"
    # AWS: a denial spares a principal only if its account, and of a session also its role, is listed.
    needed = {"account", "role", "session"} if caller["session"] else {"account", "user"}
    return "" if needed <= ways else "itself"


def applying(document, kind: str, action: str, request, caller):
    """Yield (effect, way of naming) of each statement that applies."""
    variables = document.get("Version") == "2012-10-17"
    values = {**request["values"], **caller["values"]}
    for statement in listed(document["Statement"]):
        way = naming(statement, caller, kind=kind)
        if not way or not action_matches(statement, action):
            continue
        if not resource_matches(
            statement, request, values, kind=kind, own=caller["account"], variables=variables
        ):
            continue
        if all(
            condition_holds(operator, key, listed(wanted), values, variables=variables)
            for operator, keys in statement.get("Condition", {}).items()
            for key, wanted in keys.items()
        ):
            yield statement["Effect"], way


# --- the decision -------------------------------------------------------------------------------------


def decide_one(case, action: str) -> str:
    """Return allow, deny or silent for one action."""
    caller, request = case["caller"], case["request"]

    def effects(document, kind):
        return list(applying(document, kind, action, request, caller)) if document else []

    own_side = [one for document in case["policies"] for one in effects(document, "identity")]
    resource_side = effects(case["resource_policy"], case["kind"])
    boundaries = [effects(document, "identity") for document in case["boundaries"]]
    everything = [*own_side, *resource_side, *(one for found in boundaries for one in found)]
    if any(effect == "Deny" for effect, _ in everything):
        return "deny"
    if any(not found for found in boundaries):
        return "deny"
    ways = {way for _, way in resource_side}
    if case["kind"] == "trust":
        if not ways:
            return "silent"
        if caller["provider"] or ("itself" in ways and request["account"] == caller["account"]):
            return "allow"
        return "allow" if own_side or caller["owner"] or caller["operator"] else "silent"
    if caller["operator"]:
        return "allow"
    if request["account"] == caller["account"]:
        return "allow" if caller["owner"] or own_side or "itself" in ways else "silent"
    return "allow" if ways and (own_side or caller["owner"]) else "silent"


def decide(case) -> str:
    """Return the verdict on all actions of a case."""
    found = {decide_one(case, action) for action in case["request"]["actions"]}
    return "deny" if "deny" in found else "silent" if "silent" in found else "allow"
