"""Parts of the filter that others share: the directory of callers, log-ins, operations and providers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from swift.gateway.documents import document_client
from swift.gateway.subrequest import Forward
from swift.identity.clusterkeys import ClusterKeys
from swift.identity.directory import Directory
from swift.identity.operations import IdentityOperations
from swift.identity.passwords import LoginBrake, Passwords
from swift.identity.records import User
from swift.identity.store import AGENT, RecordCache, RecordStore
from swift.identity.tokens import Ticket
from swift.middleware.swiftauth.webidentity import WebIdentities
from swift.telemetry.log import Log


@dataclass(frozen=True)
class IdentityService:
    """The identities of a cluster for one worker."""

    directory: Directory
    operations: IdentityOperations
    passwords: Passwords
    brake: LoginBrake
    keys: ClusterKeys
    web: WebIdentities
    log: Log

    def login(self, name: str, password: str, network: str) -> User | None:
        """Return the user of a name and password; None if one is wrong. Raise ``TooManyLogins``."""
        user = self.find_user(name)
        # Names that no user can have are counted as one.
        name = name if _may_be_user(name) else ""
        require_allowed = partial(self.brake.require_allowed, name, network)
        require_allowed()
        hashed = user.password if user is not None and not user.disabled else ""
        # Guesses that came at once are slowed by the first of them that were wrong.
        right = self.passwords.is_right(hashed, password, require_allowed, network=network)
        self.brake.report(name, network, right=right)
        return user if right else None

    def find_user(self, name: str) -> User | None:
        """Return the user of a name that a client sent; None if there is none."""
        return self.directory.user(name) if _may_be_user(name) else None

    def revoke(self, ticket: Ticket) -> None:
        """Refuse a token from now on."""
        self.operations.revoke(ticket)


def _may_be_user(name: str) -> bool:
    return len(name) <= 200 and name.count(":") == 1 and "/" not in name and name.isprintable()


def make_service(
    forward: Forward,
    keys: ClusterKeys,
    make_web: Callable[[RecordCache, ClusterKeys], WebIdentities],
    *,
    prefix: str,
    stale_s: float,
    outage_s: float,
    log: Log,
) -> IdentityService:
    """Return the service over the rest of a pipeline; ``prefix`` is that of accounts."""
    client = document_client(forward, AGENT)
    cache = RecordCache(RecordStore(client), stale_s=stale_s, outage_s=outage_s, log_failure=log.warning)
    passwords = Passwords()
    directory = Directory(cache, keys, prefix=prefix)
    return IdentityService(
        directory,
        IdentityOperations(cache, keys, passwords, directory=directory, client=client, prefix=prefix),
        passwords,
        LoginBrake(),
        keys,
        make_web(cache, keys),
        log,
    )
