"""Records that refuse their users: damaged documents, policies without sense, secrets that no key opens."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import NamedTuple

from swift.identity.admin.providers import parse_provider
from swift.identity.clusterkeys import ClusterKeys, Unreadable
from swift.identity.policy.conditions import InvalidPolicy
from swift.identity.policy.document import parse_identity_policy, parse_trust_policy
from swift.identity.records import (
    AccessKey,
    DamagedRecord,
    Group,
    OidcProvider,
    Record,
    Role,
    StoredPolicy,
    User,
)
from swift.identity.store import RecordStore

_KINDS: tuple[type[Record], ...] = (User, Group, Role, StoredPolicy, AccessKey, OidcProvider)


class RecordCheck(NamedTuple):
    """The records that are damaged, a sentence each, and how many were read."""

    damaged: tuple[str, ...]
    read: int
    total: int


def check_records(
    store: RecordStore,
    keys: ClusterKeys,
    *,
    limit_s: float = float("inf"),
    monotonic: Callable[[], float] = time.monotonic,
) -> RecordCheck:
    """Read records, in random order if the time may not suffice for all; raise ``StoreUnavailable``."""
    ends_at = monotonic() + limit_s
    names = [(kind, name) for kind in _KINDS for name in store.names(kind)]
    if limit_s != float("inf"):
        random.shuffle(names)
    damaged = []
    count = 0
    for kind, name in names:
        if monotonic() >= ends_at:
            break
        count += 1
        try:
            _check(store.read(kind, name).record, keys)
        except DamagedRecord as error:
            damaged.append(str(error))
        except (InvalidPolicy, Unreadable) as error:
            damaged.append(f"{kind.kind}/{name}: {error}")
    return RecordCheck(tuple(sorted(damaged)), count, len(names))


def _check(record: Record | None, keys: ClusterKeys) -> None:
    """Use all of a record; raise ``DamagedRecord``, ``InvalidPolicy`` and ``Unreadable``."""
    if isinstance(record, AccessKey):
        keys.open(record.secret, record.name)
    elif isinstance(record, OidcProvider):
        parse_provider(record, keys)
    elif isinstance(record, StoredPolicy):
        parse_identity_policy(record.document)
    elif isinstance(record, User | Group | Role):
        for document in record.inline.values():
            parse_identity_policy(document)
    if isinstance(record, Role):
        parse_trust_policy(record.trust)
