"""``doc/reference/actions.md``, from the table of requests of the Swift API and the list of actions."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from swift.identity.policy.actions import ACTION_NAMES
from swift.identity.policy.predefined import PREDEFINED_DOCUMENTS
from swift.identity.policy.swiftrequests import (
    GET_OWNER_HEADERS,
    OTHER_REQUEST,
    PUT_OWNER_HEADERS,
    RULES,
    Effect,
    PathLevel,
    Rule,
)

_HEAD = f"""# Actions of policies

`python -m tools.generate` makes this page from the table of requests
(`swift/identity/policy/swiftrequests.py`) and the list of actions (`swift/identity/policy/actions.py`).

A policy allows or denies *actions* on *resources*. Operations of the S3 API have the actions that AWS
documents. Requests of the Swift API need the same actions where AWS has one, and otherwise actions that begin
with `swift:`. All actions of a request must be allowed.

| resource | ARN |
|---|---|
| account | `*` or `arn:aws:s3:::*` |
| container | `arn:aws:s3:::CONTAINER` |
| object | `arn:aws:s3:::CONTAINER/OBJECT` |
| container of another account | `arn:aws:s3:::ACCOUNT:CONTAINER` |
| container of any account | `arn:aws:s3:::*:CONTAINER` |
| user, group, role, policy | `arn:aws:iam::TENANT:user/NAME` and so on |

The account before a container is a name or `*`. A container without an account is one of the caller's own
account; `arn:aws:s3:::*` means all containers and objects of all accounts.

Policies decide in this order, as AWS states it:

1. A `Deny` that applies ends the request, in a policy of the caller, of the container or of a boundary.
2. Each boundary must allow: the policy of a session and the limits of an access key. This holds for owners
   and operators too.
3. An operator (`.reseller_admin`) is allowed the rest.
4. In its own account the caller is allowed if it is the owner (`.admin`), if one of its policies allows, or
   if the container's policy allows and names the caller or all callers. A container's policy that names only
   the account leaves the decision to the caller's policies.
5. In another account the container's policy must allow, and the caller's policies too.
6. Without a decision the ACLs decide.

`NotPrincipal` is read in the way that permits less. With `Allow` it leaves out each caller that is named in
any way. With `Deny` it spares a user that is named together with its account, and a session that is named
together with its role and its account.

| request without a caller | policies |
|---|---|
| temporary URL, form post | a `Deny` of the container for all (`"Principal": "*"`); its key allows the rest |
| request of container sync | none holds: the key of the container allows it |

## Requests of the Swift API

Requests that filters make for a request (copies, bulk requests, segments, targets of links) are authorized
one by one. `X-Remove-…` headers need what the header needs. Methods that are not in the table need
`{OTHER_REQUEST}`, and OPTIONS needs nothing. The headers of owners are shown to callers that may
`{GET_OWNER_HEADERS}`. They are taken from callers that have the action of the header; those that the option
`swift_owner_headers` adds are taken from callers that may `{PUT_OWNER_HEADERS}`.
"""
_EFFECTS = {
    Effect.BASE: "",
    Effect.DEFAULT: "",
    Effect.ADD: "in addition",
    Effect.REPLACE: "instead",
    Effect.NONE: "",
}


def page_text() -> str:
    """Return the page."""
    lines = [_HEAD.rstrip()]
    for level in PathLevel:
        lines += [
            "",
            f"### {level.value.capitalize()}",
            "",
            "| request | action | remarks |",
            "|---|---|---|",
        ]
        lines += [_row(rule) for rule in RULES if rule.level is level]
    lines += ["", "## Policies by name", "", "| name | document |", "|---|---|"]
    lines += [f"| `{name}` | `{document}` |" for name, document in PREDEFINED_DOCUMENTS.items()]
    lines += ["", "## All actions"]
    for service in dict.fromkeys(name.partition(":")[0] for name in ACTION_NAMES):
        names = [name for name in ACTION_NAMES if name.startswith(f"{service}:")]
        lines += ["", f"### {service}", "", "```text", *textwrap.wrap(" ".join(names), 98), "```"]
    return "\n".join(lines) + "\n"


def _row(rule: Rule) -> str:
    request = ", ".join(rule.methods)
    if rule.parameter:
        request += f" `?{rule.parameter}`"
    if rule.header:
        request += f" `{rule.header.title()}{'*' if rule.header.endswith('-') else ''}`"
    action = f"`{rule.action}`" if rule.action else "none of its own"
    remarks = [_EFFECTS[rule.effect], "header of owners" if rule.is_owner_header else "", rule.note]
    return f"| {request} | {action} | {'; '.join(filter(None, remarks))} |"


def files(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the generated file below ``root`` with its text."""
    yield root / "doc" / "reference" / "actions.md", page_text()
