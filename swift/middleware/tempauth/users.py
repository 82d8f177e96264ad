"""Users and options of the tempauth section (spec: middleware.md §1)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from swift.base.errors import ConfigError
from swift.config.kinds import integer
from swift.config.schema import Settings, option
from swift.middleware.groupauth import ADMIN


@dataclass(frozen=True)
class TempauthSettings(Settings):
    """``[filter:tempauth]`` without its users."""

    option_patterns: ClassVar[tuple[str, ...]] = (
        *("user_*", "user64_*", "s3_key_*", "fernet_key_*"),
        "*require_group",
    )

    reseller_prefix: tuple[str, ...] = option(("AUTH",), "Prefixes of the accounts that it governs.")
    require_group: str = option("", "Group that owners must be in; also per prefix: SERVICE_require_group.")
    auth_prefix: str = option("/auth/", "Path below which clients request tokens.")
    token_life: int = option(86400, "Seconds a token is valid.", kind=integer(1))
    allow_overrides: bool = option(True, "Let swift.authorize_override of other filters pass.")
    active_fernet_key_id: str = option(
        "", "Key for tokens that no cache has to remember: the <id> of an option fernet_key_<id>."
    )
    storage_url_scheme: str = option("default", "Scheme of storage URLs: default, http or https.")


@dataclass(frozen=True, slots=True)
class User:
    """One configured user."""

    account: str
    name: str
    key: str = field(repr=False)
    groups: tuple[str, ...]
    storage_url: str | None


def parse_users(conf: Mapping[str, object]) -> dict[tuple[str, str], User]:
    """Return the users of ``user_…`` and ``user64_…`` options; raises ``ConfigError`` naming the option."""
    users: dict[tuple[str, str], User] = {}
    for name, value in conf.items():
        if name.startswith(("user_", "user64_")):
            kind, _, rest = name.partition("_")
            account, separator, user = rest.partition("_")
            if not separator or "_" in user or not account or not user:
                raise ConfigError(f"option {name} must be {kind}_<account>_<user>")
            if kind == "user64":
                account, user = _decode_base64(name, account), _decode_base64(name, user)
            users[account, user] = _parse_user(name, account, user, str(value))
    return users


@dataclass(frozen=True, slots=True)
class AccessKey:
    """An S3 access key: its user and secret key."""

    user: User
    secret: str = field(repr=False)


def parse_access_keys(
    conf: Mapping[str, object], users: Mapping[tuple[str, str], User]
) -> dict[str, AccessKey]:
    """Return the S3 access keys: each user's ``account:user``, and those of ``s3_key_…`` options.

    Raises ``ConfigError`` naming the option.
    """
    keys = {f"{user.account}:{user.name}": AccessKey(user, user.key) for user in users.values()}
    for name, value in conf.items():
        if name.startswith("s3_key_"):
            access_key = name.removeprefix("s3_key_")
            owner, _, secret = str(value).strip().partition(" ")
            account, _, user = owner.partition(":")
            if not access_key or not secret.strip():
                raise ConfigError(
                    f"option {name} must be s3_key_<access key> = <account>:<user> <secret key>"
                )
            if (account, user) not in users:
                raise ConfigError(f"option {name}: there is no user {owner}; add user_{account}_{user}")
            if access_key in keys:
                raise ConfigError(f"option {name}: {access_key} is already the access key of a user")
            keys[access_key] = AccessKey(users[account, user], secret.strip())
    return keys


def _decode_base64(option_name: str, text: str) -> str:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4)).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        raise ConfigError(f"option {option_name}: {text!r} is not base64 of UTF-8")


def _parse_user(option_name: str, account: str, user: str, value: str) -> User:
    tokens = value.split()
    if not tokens:
        raise ConfigError(f"option {option_name} has no key")
    key, *groups = tokens
    storage_url = groups.pop() if groups and ("://" in groups[-1] or "$HOST" in groups[-1]) else None
    return User(account, user, key, tuple(groups), storage_url)


def format_groups(user: User, prefixes: list[str]) -> str:
    """Return the group string of a token: account, account:user, configured groups, owned accounts."""
    groups = [user.account, f"{user.account}:{user.name}"]
    groups += [group for group in user.groups if group != ADMIN]
    if ADMIN in user.groups:
        groups += [prefix + user.account for prefix in prefixes]
        if user.storage_url:
            groups.append(user.storage_url.rsplit("/", 1)[-1])
    return ",".join(dict.fromkeys(groups))
