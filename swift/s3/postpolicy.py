"""The policy of a browser's form: until when, and which fields it may have. Pure.

A form may say nothing that its signer did not foresee: every field needs a condition, but for those that
carry the policy and its signature. That goes for the bucket too, also where only the URL names it.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass

from swift.s3.errors import S3Error
from swift.s3.signature.dates import iso_seconds

POLICY_BYTES_MAX = 20 << 10
#: Fields that need no condition.
_FREE = frozenset(("policy", "signature", "x-amz-signature", "awsaccesskeyid", "file"))
_IGNORED = "x-ignore-"
#: Bytes of a file where the policy says nothing.
FILE_BYTES_MAX = 5 << 30


@dataclass(frozen=True, slots=True)
class PostPolicy:
    """Conditions by field (lower case): (operator, value)."""

    expires: int
    conditions: tuple[tuple[str, str, str], ...]
    size_min: int = 0
    size_max: int = FILE_BYTES_MAX


def parse_post_policy(text: str) -> PostPolicy:
    """From the base64 of a form's field; raises ``S3Error``."""
    if len(text) > 2 * POLICY_BYTES_MAX:
        raise _bad("The policy is too large.")
    try:
        tree = json.loads(b64decode("".join(text.split()), validate=True).decode("utf-8"))
    except (ValueError, RecursionError):
        raise _bad("Invalid Policy: Invalid JSON.")
    if not isinstance(tree, dict) or not {"expiration", "conditions"} >= set(tree):
        raise _bad("Invalid Policy: Unexpected property.")
    expires = iso_seconds(tree["expiration"]) if isinstance(tree.get("expiration"), str) else None
    if expires is None:
        raise _bad("Invalid Policy: Invalid 'expiration' value.")
    items = tree.get("conditions")
    if not isinstance(items, list):
        raise _bad("Invalid Policy: Invalid 'conditions' value: must be a List.")
    conditions: list[tuple[str, str, str]] = []
    size_min, size_max = 0, FILE_BYTES_MAX
    for item in items:
        if isinstance(item, list) and len(item) == 3 and str(item[0]).lower() == "content-length-range":
            low, high = _count(item[1]), _count(item[2])
            size_min, size_max = max(size_min, low), min(size_max, high)
        else:
            conditions += _conditions(item)
    return PostPolicy(expires, tuple(conditions), size_min, size_max)


def _bad(text: str) -> S3Error:
    return S3Error("InvalidPolicyDocument", text)


def _count(value: object) -> int:
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()) or len(text) > 15:
        raise _bad("Invalid Policy: Invalid content-length-range.")
    return int(text)


def _conditions(item: object) -> list[tuple[str, str, str]]:
    if isinstance(item, dict) and item:
        pairs = [("eq", f"${name}", value) for name, value in item.items()]
    elif isinstance(item, list) and len(item) == 3:
        pairs = [(item[0], item[1], item[2])]
    else:
        raise _bad("Invalid Policy: Invalid condition.")
    found = []
    for operator, name, value in pairs:
        if not (isinstance(operator, str) and isinstance(name, str) and isinstance(value, str)):
            raise _bad("Invalid Policy: Invalid condition.")
        if operator.lower() not in ("eq", "starts-with") or len(name) < 2 or not name.startswith("$"):
            raise _bad("Invalid Policy: Invalid condition.")
        found.append((operator.lower(), name[1:].lower(), value))
    return found


def check_form(policy: PostPolicy, fields: Mapping[str, str], literal: Mapping[str, str], now: float) -> None:
    """Raise ``S3Error`` when a form is not what its policy says.

    ``literal`` are the fields as they came, before the file's name was put in.
    """
    if policy.expires <= now:
        raise _denied("Policy expired.")
    covered = {name for _, name, _ in policy.conditions}
    for name in fields:
        if name not in covered and name not in _FREE and not name.startswith(_IGNORED):
            raise _denied(f"Extra input fields: {name}")
    for operator, name, value in policy.conditions:
        if not _holds(operator, name, value, fields, literal):
            raise _denied(f'Policy Condition failed: ["{operator}", "${name}", "{value}"]')


def _holds(
    operator: str, name: str, value: str, fields: Mapping[str, str], literal: Mapping[str, str]
) -> bool:
    text = fields.get(name, "")
    if operator == "eq":
        return value in (text, literal.get(name, ""))
    if name == "content-type":
        return all(word.strip().startswith(value) for word in text.split(","))
    return text.startswith(value)


def _denied(text: str) -> S3Error:
    return S3Error("AccessDenied", f"Invalid according to Policy: {text}", reason="post_policy")
