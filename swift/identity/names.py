"""Names of users, groups, roles, policies and access keys, and their ARNs.

Each name is a path-safe word, so that it can be part of an ARN, a header, an ACL and an object's name.
"""

from __future__ import annotations

import re
import secrets

from swift.base.errors import SwiftError

#: The hidden account of the records.
ACCOUNT = ".swiftauth"
NAME_MAX, ACCESS_KEY_MAX, SECRET_MIN, SECRET_MAX = 64, 128, 8, 256
_is_name = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+=-]*", re.ASCII).fullmatch
_is_tenant = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII).fullmatch
_is_access_key = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@:+=-]{2,127}", re.ASCII).fullmatch
_is_visible = re.compile(r"[!-~]*", re.ASCII).fullmatch
#: Base32 without letters that people confuse.
_KEY_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
#: First letters of access keys, by which people know AWS's kinds: lasting ones and those of sessions.
LASTING_PREFIX, SESSION_PREFIX = "AKIA", "ASIA"


class InvalidIdentity(SwiftError):
    """A value that an identity cannot have; the text names the field."""

    def __init__(self, field: str, text: str):
        super().__init__(f"{field}: {text}")
        self.field = field


class QualifiedName(str):
    """``TENANT:NAME``."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str, field: str) -> QualifiedName:
        """Return the name of a user, group, role or policy; raise ``InvalidIdentity`` naming the field."""
        tenant, colon, name = text.partition(":")
        if not colon:
            raise InvalidIdentity(field, f"{shown(text)} must be TENANT:NAME")
        validate_tenant(tenant, field)
        validate_name(name, field)
        return cls(text)

    @property
    def tenant(self) -> str:
        """The tenant."""
        return self.partition(":")[0]

    @property
    def name(self) -> str:
        """The name within the tenant."""
        return self.partition(":")[2]


def shown(text: str) -> str:
    """Return a text as it may stand in messages and logs: quoted, inert, of limited length."""
    return ascii(text if len(text) <= NAME_MAX else f"{text[:NAME_MAX]}...")


def validate_name(name: str, field: str) -> str:
    """Return a name within a tenant; raise ``InvalidIdentity``."""
    if len(name) > NAME_MAX or not _is_name(name):
        text = (
            f"{shown(name)} must have 1 to {NAME_MAX} letters, digits and _.@+=- and begin with none of .@+=-"
        )
        raise InvalidIdentity(field, text)
    return name


def validate_tenant(tenant: str, field: str) -> str:
    """Return the name of a tenant, whose account is the reseller prefix and it; raise ``InvalidIdentity``."""
    if len(tenant) > NAME_MAX or not _is_tenant(tenant):
        text = f"tenant {shown(tenant)} must have 1 to {NAME_MAX} letters, digits, _ and -"
        raise InvalidIdentity(field, text)
    return tenant


def validate_access_key(access_key: str) -> str:
    """Return an access key; raise ``InvalidIdentity``."""
    if not is_access_key(access_key):
        text = f"{shown(access_key)} must have 3 to {ACCESS_KEY_MAX} letters, digits and _.@:+=-"
        raise InvalidIdentity("access_key", text)
    if access_key.startswith(SESSION_PREFIX):
        raise InvalidIdentity("access_key", f"{SESSION_PREFIX}… are keys of sessions")
    return access_key


def is_access_key(text: str) -> bool:
    """Return True for a text that can be an access key."""
    return _is_access_key(text) is not None


def validate_secret(secret: str, *, may_be_short: bool = False) -> str:
    """Return a secret key; raise ``InvalidIdentity`` without showing it."""
    least = 1 if may_be_short else SECRET_MIN
    if not least <= len(secret) <= SECRET_MAX or not _is_visible(secret):
        raise InvalidIdentity("secret_key", f"must have {least} to {SECRET_MAX} visible ASCII characters")
    return secret


def new_access_key() -> str:
    """Return a new access key in AWS's form."""
    return LASTING_PREFIX + "".join(secrets.choice(_KEY_LETTERS) for _ in range(16))


def new_secret() -> str:
    """Return a new secret key of 240 bits."""
    return secrets.token_urlsafe(30)


# --- ARNs ---------------------------------------------------------------------------------------------


def parse_arn(text: str, kind: str, field: str) -> QualifiedName:
    """Return the name in an ARN of a kind (``role``); raise ``InvalidIdentity``."""
    found = re.fullmatch(rf"arn:aws:iam::([^:/]+):{kind}/(?:[^:]*/)?([^:/]+)", text, re.ASCII)
    if found is None:
        raise InvalidIdentity(field, f"{shown(text)} must be arn:aws:iam::TENANT:{kind}/NAME")
    return QualifiedName.parse(f"{found[1]}:{found[2]}", field)
