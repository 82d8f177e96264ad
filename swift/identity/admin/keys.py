"""Access keys of users."""

from __future__ import annotations

import ipaddress
from dataclasses import replace

from swift.base.documents import JsonObject
from swift.base.errors import SwiftError
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
    DamagedRecord,
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
        if ":" in name and name != user:
            # A user logs in with such a name.
            raise InvalidIdentity("access_key", "with a colon must be the name of its user")
        secret = validate_secret(secret_key, may_be_short=imported) if secret_key else new_secret()
        if 0 < ends <= self._now() or ends < 0:
            raise InvalidIdentity("ends", "is past")
        if prefix and not container:
            raise InvalidIdentity("prefix", "needs a container")
        if len(container) > 256 or "/" in container or len(prefix) > 1024:
            raise InvalidIdentity("container", "or prefix is too long, or the container has a slash")
        owner = self._require(User, user, "user")
        self._with_room(owner)
        record = AccessKey(
            name,
            user=user,
            secret=self._keys.seal(secret, name),
            # Clocks of proxies differ; keys of before the user would be of an earlier one.
            created=max(self._now(), owner.created),
            ends=ends,
            note=validate_note(note),
            read_only=read_only,
            container=container,
            prefix=prefix,
            networks=tuple(map(_validate_network, networks)),
        )
        self._create(record)
        try:
            self._update(User, user, "user", lambda u: _with_key(self._with_room(u), name))
        except SwiftError:
            # A key that its user does not list could not be found, nor deleted with the user.
            self._delete(AccessKey, name)
            raise
        return {**describe_key(record), "secret_key": secret}

    def list_access_keys(self, *, user: str) -> JsonObject:
        """Return the access keys of a user with their last use, without secrets; also damaged ones."""
        owner = self._require(User, user, "user")
        found = []
        for name in owner.keys:
            try:
                record, damaged = self._store.read(AccessKey, name).record, False
            except DamagedRecord:
                record, damaged = AccessKey(name, user, "", disabled=True), True
            if record is not None:
                found.append({**describe_key(record), **self._last_use(name), "damaged": damaged})
        return {"user": user, "keys": found}

    def _last_use(self, access_key: str) -> JsonObject:
        try:
            use = self._store.read(KeyUse, access_key).record
        except DamagedRecord:
            use = None
        return {"last_used": use.at if use else 0.0, "last_address": use.address if use else ""}

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

    def delete_access_key(self, *, access_key: str, user: str = "") -> JsonObject:
        """Delete an access key: it is revoked. ``user`` is the one that lists it, if it is damaged."""
        record = self._find(AccessKey, access_key, "access_key")
        owner = record.user if record else user
        if user and owner != user:
            raise NoSuchIdentity("access_key", f"{shown(access_key)} is not of {shown(user)}")
        self._delete(AccessKey, access_key)
        self._delete(KeyUse, access_key)
        try:
            if owner:
                self._update(
                    User,
                    owner,
                    "user",
                    lambda u: replace(u, keys=tuple(key for key in u.keys if key != access_key)),
                )
        except NoSuchIdentity:
            # The user is gone as well.
            pass
        return {}

    def owner_of_key(self, access_key: str, user: str) -> str:
        """Return the user of an access key; of a damaged one ``user``, if it lists the key.

        Raises ``NoSuchIdentity``, and ``DamagedRecord`` if the owner is unknown.
        """
        try:
            return self._require(AccessKey, access_key, "access_key").user
        except DamagedRecord:
            if user and access_key in self._require(User, user, "user").keys:
                return user
            raise

    def _with_room(self, user: User) -> User:
        """Return a user that may have one more access key; raise ``InvalidIdentity``."""
        if len(user.keys) >= KEYS_MAX:
            # Damaged keys may have been revoked without their user.
            user = replace(user, keys=tuple(key for key in user.keys if self._is_there(key)))
        if len(user.keys) >= KEYS_MAX:
            raise InvalidIdentity("user", f"has {KEYS_MAX} access keys already; delete one")
        return user

    def _is_there(self, access_key: str) -> bool:
        try:
            return self._store.read(AccessKey, access_key).record is not None
        except DamagedRecord:
            return True


def _with_key(user: User, access_key: str) -> User:
    return replace(user, keys=(*user.keys, access_key))


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
