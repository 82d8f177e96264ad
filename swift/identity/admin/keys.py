"""Access keys of users."""

from __future__ import annotations

import ipaddress
from dataclasses import replace

from swift.base.documents import JsonObject
from swift.identity.admin.base import (
    Admin,
    NoSuchIdentity,
    validate_note,
)
from swift.identity.names import (
    InvalidIdentity,
    new_access_key,
    new_secret,
    shown,
    validate_access_key,
    validate_secret,
)
from swift.identity.records import (
    KEYS_MAX,
    AccessKey,
    KeyUse,
    User,
)


class KeyAdmin(Admin):
    """Access keys."""

    def create_access_key(
        self,
        *,
        user: str,
        access_key: str = "",
        secret_key: str = "",
        ends: float = 0.0,
        note: str = "",
        read_only: bool = False,
        container: str = "",
        prefix: str = "",
        networks: tuple[str, ...] = (),
        imported: bool = False,
    ) -> JsonObject:
        """Create an access key of a user and return it with its secret key.

        ``imported``: the secret key comes from elsewhere and may be shorter than new ones.
        """
        name = validate_access_key(access_key) if access_key else new_access_key()
        secret = validate_secret(secret_key, may_be_short=imported) if secret_key else new_secret()
        if 0 < ends <= self._now() or ends < 0:
            raise InvalidIdentity("ends", "is past")
        if prefix and not container:
            raise InvalidIdentity("prefix", "needs a container")
        if len(container) > 256 or "/" in container or len(prefix) > 1024:
            raise InvalidIdentity("container", "or prefix is too long, or the container has a slash")
        owner = self._require(User, user, "user")
        if len(owner.keys) >= KEYS_MAX:
            raise InvalidIdentity("user", f"has {KEYS_MAX} access keys already; delete one")
        record = AccessKey(
            name,
            user=user,
            secret=self._keys.seal(secret, name),
            created=self._now(),
            ends=ends,
            note=validate_note(note),
            read_only=read_only,
            container=container,
            prefix=prefix,
            networks=tuple(map(_validate_network, networks)),
        )
        self._create(record)
        self._update(User, user, "user", lambda u: replace(u, keys=(*u.keys, name)))
        return {**describe_key(record), "secret_key": secret}

    def list_access_keys(self, *, user: str) -> JsonObject:
        """Return the access keys of a user with their last use, without secrets."""
        owner = self._require(User, user, "user")
        found = []
        for name in owner.keys:
            record = self._store.read(AccessKey, name).record
            if record is None:
                continue
            use = self._store.read(KeyUse, name).record
            found.append(
                {
                    **describe_key(record),
                    "last_used": use.at if use else 0.0,
                    "last_address": use.address if use else "",
                }
            )
        return {"user": user, "keys": found}

    def update_access_key(
        self,
        *,
        access_key: str,
        disabled: bool | None = None,
        ends: float | None = None,
        note: str | None = None,
    ) -> JsonObject:
        """Disable or enable an access key, or change its end or note."""
        if note is not None:
            validate_note(note)
        if ends is not None and ends < 0:
            raise InvalidIdentity("ends", "must be a Unix time, or 0 for none")

        def change(old: AccessKey) -> AccessKey:
            return replace(
                old,
                disabled=old.disabled if disabled is None else disabled,
                ends=old.ends if ends is None else ends,
                note=old.note if note is None else note,
            )

        return describe_key(self._update(AccessKey, access_key, "access_key", change))

    def delete_access_key(self, *, access_key: str) -> JsonObject:
        """Delete an access key: it is revoked."""
        record = self._require(AccessKey, access_key, "access_key")
        self._delete(AccessKey, access_key)
        try:
            self._update(
                User,
                record.user,
                "user",
                lambda u: replace(u, keys=tuple(key for key in u.keys if key != access_key)),
            )
        except NoSuchIdentity:
            # The user is gone as well.
            pass
        return {}

    def owner_of_key(self, access_key: str) -> str:
        """Return the user of an access key; raise ``NoSuchIdentity``."""
        return self._require(AccessKey, access_key, "access_key").user


def _validate_network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise InvalidIdentity("networks", f"{shown(text)} is no address or network")


def describe_key(key: AccessKey) -> JsonObject:
    """Return an access key as operations report it, without its secret."""
    return {
        "access_key": key.name,
        "user": key.user,
        "created": key.created,
        "ends": key.ends,
        "disabled": key.disabled,
        "note": key.note,
        "read_only": key.read_only,
        "container": key.container,
        "prefix": key.prefix,
        "networks": list(key.networks),
    }
