"""Access control lists: their syntax and evaluation, pure (spec: public-api.md §15, middleware.md §1)."""

from __future__ import annotations

import json
from urllib.parse import unquote, urlsplit

from swift.base.documents import JsonObject

_REFERRER_WORDS = frozenset((".r", ".ref", ".referer", ".referrer"))
#: Characters that no host has; readers of URLs disagree about where a host with one ends.
_FORBIDDEN_IN_HOST = frozenset((*map(chr, range(33)), *"\"#%&'()*+,/;<=>?@[\\]^`{|}!$~\x7f"))
_UNKNOWN_HOST = "unknown"
ACCOUNT_ACL_KEYS = ("admin", "read-write", "read-only")


def normalize_acl(name: str, value: str) -> str:
    """Return the normalised text of a container ACL header; raises ValueError with the text for a 400."""
    items = []
    for raw in value.split(","):
        item = raw.strip()
        if not item:
            continue
        if ":" not in item or not item.startswith("."):
            items.append(item)
            continue
        first, _, second = (part.strip() for part in item.partition(":"))
        items.append(_clean_referrer(name, raw.strip(), first, second))
    return ",".join(items)


def _clean_referrer(name: str, raw: str, first: str, second: str) -> str:
    if first not in _REFERRER_WORDS:
        raise ValueError(f"Unknown designator {first!r} in ACL: {raw!r}")
    if "write" in name.lower():
        raise ValueError(f"Referrers not allowed in write ACL: {raw!r}")
    negate = second.startswith("-")
    host = second[1:].strip() if negate else second
    if host and host != "*" and host.startswith("*"):
        host = host[1:].strip()
    if not host or host == ".":
        raise ValueError(f"No host/domain value after referrer designation in ACL: {raw!r}")
    return f".r:{'-' if negate else ''}{host}"


def parse_acl(text: str | None) -> tuple[list[str], list[str]]:
    """Return the referrer rules without ``.r:`` and the group names of a normalised ACL."""
    referrers: list[str] = []
    groups: list[str] = []
    for item in (text or "").split(","):
        if item.startswith(".r:"):
            referrers.append(item[3:])
        elif item:
            groups.append(unquote(item))
    return referrers, groups


def remove_referrer_rules(text: str | None) -> str | None:
    """Return a normalised ACL without its referrer rules."""
    if not text or ".r" not in text:
        return text
    return ",".join(item for item in text.split(",") if not item.startswith((".r:", ".rlistings")))


def is_referrer_allowed(referer: str | None, rules: list[str]) -> bool:
    """Return True if the host of a Referer URL may read; the last matching rule wins, none denies."""
    allowed = False
    if not rules:
        return allowed
    host = _referrer_host(referer or "")
    for rule in rules:
        is_denial = rule.startswith("-")
        name = rule.removeprefix("-").lower().rstrip(".")
        if name == host or (name.startswith(".") and host.endswith(name)):
            allowed = not is_denial
        elif rule == "*":
            allowed = True
    return allowed


def _referrer_host(url: str) -> str:
    """Return the host that a browser takes from a URL, in lower case and without the root's dot."""
    try:
        # To browsers a backslash is a slash.
        host = urlsplit(url.replace("\\", "/")).hostname
    except ValueError:
        # A client may send anything as its Referer.
        host = None
    host = (host or "").rstrip(".")
    return host if host and not _FORBIDDEN_IN_HOST.intersection(host) else _UNKNOWN_HOST


def parse_account_acl(text: str) -> dict[str, list[str]] | None:
    """Return the JSON of X-Account-Access-Control, None when it is no JSON object; empty text is ``{}``."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def parse_stored_account_acl(text: str | None) -> dict[str, list[str]]:
    """Return the grants of a stored account ACL; a malformed one grants nothing."""
    if not text or account_acl_error(text) is not None:
        return {}
    return parse_account_acl(text) or {}


def account_acl_error(text: str) -> str | None:
    """Return the error in an account ACL header, or None if it is valid."""
    parsed = parse_account_acl(text)
    if parsed is None:
        return f"Syntax error in input ({text!r})"
    for key, members in parsed.items():
        if key not in ACCOUNT_ACL_KEYS:
            return f"Key {json.dumps(key)} not recognized"
        if not isinstance(members, list):
            return f"Value for key {json.dumps(key)} must be a list"
        if not all(isinstance(member, str) for member in members):
            return f"Elements of {json.dumps(key)} list must be strings"
    return None


def format_account_acl(parsed: JsonObject) -> str:
    """Return the normalised header text: sorted keys, no spaces, ASCII; empty when nothing is granted."""
    return json.dumps(parsed, separators=(",", ":"), sort_keys=True) if parsed else ""
