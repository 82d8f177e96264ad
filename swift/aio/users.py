"""The users of a new cluster with ``swiftauth``: an operator, and others for tests of access rights."""

from __future__ import annotations

from swift.aio.plan import ClusterPlan
from swift.base.errors import SwiftError
from swift.identity.admin.base import IdentityExists
from swift.middleware.swiftauth.local import LocalIdentities

_OWNER, _OPERATOR = ".admin", ".reseller_admin"


def create_users(plan: ClusterPlan) -> None:
    """Create the users that a running cluster lacks; raise ``SwiftError``."""
    identities = LocalIdentities(str(plan.etc / "internal-client.conf"), str(plan.key_file))
    tenant, _, name = plan.user.partition(":")
    # A key from the environment of a container is for one account.
    rights = (_OWNER, _OPERATOR) if plan.has_test_users else (_OWNER,)
    users: list[tuple[str, str, tuple[str, ...]]] = [(plan.user, plan.key, rights)]
    if plan.has_test_users:
        users += [
            (f"{tenant}:{name}3", f"{plan.key}3", ()),
            (f"{tenant}2:{name}2", f"{plan.key}2", (_OWNER,)),
            ("admin:admin", f"{plan.key}admin", (_OWNER, _OPERATOR)),
        ]
    try:
        for user, key, groups in users:
            _create(identities, "CreateUser", user=user, password=key, groups=groups)
            # Clients of S3 may use the user's name and key, as with tempauth.
            _create(identities, "CreateAccessKey", user=user, access_key=user, secret_key=key)
        if plan.access_key:
            _create(
                identities,
                "CreateAccessKey",
                user=plan.user,
                access_key=plan.access_key,
                secret_key=plan.secret_key,
            )
    except SwiftError as error:
        raise SwiftError(f"the users cannot be created: {error}")


def _create(identities: LocalIdentities, operation: str, **params: object) -> None:
    try:
        identities.call(operation, **params, imported=True)
    except IdentityExists:
        # It is there since an earlier start.
        return
