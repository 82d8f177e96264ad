"""Operations on a node itself, through the pipeline of an ``internal-client.conf``, with all rights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

from swift.base.calls import T, Ts
from swift.base.documents import JsonObject
from swift.compose import internal_pipeline
from swift.gateway.documents import document_client
from swift.identity.admin.damage import RecordCheck, check_records
from swift.identity.clusterkeys import read_key_file
from swift.identity.directory import Directory
from swift.identity.operations import EMPTY_CONTEXT, IdentityOperations
from swift.identity.passwords import Passwords
from swift.identity.store import AGENT, RecordCache, RecordStore

PREFIX = "AUTH_"
#: File of the cluster's keys, in the directory of the configuration.
KEY_FILE = "swiftauth.key"


class LocalIdentities:
    """Operations on this node, through the pipeline of an ``internal-client.conf``, with all rights."""

    def __init__(self, conf_path: str, key_file: str, *, prefix: str = PREFIX):
        self._keys = keys = read_key_file(key_file)
        client = document_client(internal_pipeline(conf_path), AGENT)
        self._store = RecordStore(client)
        cache = RecordCache(self._store, stale_s=1.0, outage_s=1.0)
        directory = Directory(cache, keys, prefix=prefix)
        self._operations = IdentityOperations(
            cache, keys, Passwords(_call), directory=directory, client=client, prefix=prefix
        )

    def call(self, operation: str, **params: object) -> JsonObject:
        """Return the result of an operation."""
        return self._operations.call(operation, given_params(params), None, EMPTY_CONTEXT)

    def check_records(self, limit_s: float = float("inf")) -> RecordCheck:
        """Return the records that cannot be used, of as many as can be read in a time."""
        return check_records(self._store, self._keys, limit_s=limit_s)


def _call(function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    return function(*args)


def given_params(params: JsonObject) -> JsonObject:
    """Return the parameters that are given, as JSON has them."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in params.items()
        if value is not None
    }
