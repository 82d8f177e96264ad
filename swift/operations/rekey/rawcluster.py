"""The objects of a cluster as they are stored, and their keys: a proxy's app and keymasters without the rest.

Other filters would follow links, join large objects, archive versions and decrypt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple, cast

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.base.errors import ConfigError
from swift.cluster.direct import DirectClient
from swift.cluster.expiry import EXPIRING_ACCOUNT
from swift.cluster.rings import Rings
from swift.cluster.transport import BackendResponse, NodeTimeouts
from swift.compose import PROCESS_KEY, SWIFT_DIR, Process, cluster_of, connections_to_nodes, telemetry_of
from swift.container.misplaced import QUEUE_ACCOUNT
from swift.gateway.internal_client import InternalClient
from swift.http import environkeys, fields
from swift.http.cryptokeys import FetchKeys
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.encryption.rewrap import secret_of
from swift.middleware.filter import App
from swift.policy.policy import Policy
from swift.proxy.obj.commit.stored import stored_read_headers
from swift.runtime.pipeline import Pipeline, read_pipeline
from swift.runtime.wsgi import handle_of_app

AGENT = "swift-rekey"
KEYMASTERS = ("keymaster", "kms_keymaster", "kmip_keymaster", "vault_keymaster")
#: Accounts whose containers have rows, but no objects.
_ROWS_ONLY = (EXPIRING_ACCOUNT, QUEUE_ACCOUNT)
_SHARDS_PREFIX = ".shards_"
_CONNECTION_TIMEOUT_S, _NODE_TIMEOUT_S = 2.0, 30.0


class Position(NamedTuple):
    """A place in the walk through the objects of accounts: all before it are done."""

    account: str
    container: str
    marker: str


class Page(NamedTuple):
    """Rows of a container's listing."""

    container: EntityPath
    policy: Policy
    rows: Sequence[JsonObject]

    @property
    def end(self) -> Position:
        """The position after the page."""
        last = str(self.rows[-1]["name"]) if self.rows else ""
        return Position(self.container.account, str(self.container.container), last)


class RawCluster:
    """Raw objects and their keys, by the pipeline in the configuration file of a proxy."""

    def __init__(self, conf_path: str):
        """``conf_path`` is the proxy's file; raises ``ConfigError``."""
        pipeline = read_pipeline(conf_path, {PROCESS_KEY: Process()})
        if pipeline.app.entry_point_name != "proxy":
            raise ConfigError(f"{conf_path} is not the configuration of a proxy")
        keymasters = [each for each in pipeline.filters if each.entry_point_name in KEYMASTERS]
        if not keymasters:
            raise ConfigError(f"{conf_path} has no keymaster in its pipeline")
        self._ask_keymasters = handle_of_app(cast(App, Pipeline(_LastOfKeymasters, keymasters).create()))
        caches = [each for each in pipeline.filters if each.entry_point_name == "memcache"]
        handle = handle_of_app(cast(App, Pipeline(pipeline.app, caches).create()))

        def forward(request: Request) -> Response:
            # The size of a large object is a parameter of its stored type.
            request.env[environkeys.CONTENT_TYPE_OVERRIDDEN] = True
            return handle(request)

        self.client = InternalClient(forward, AGENT)
        #: For bodies that are read from elsewhere at the same time.
        self.writer = InternalClient(forward, AGENT, tries=1)
        conf = {**pipeline.app.global_conf, **pipeline.app.local_conf}
        cluster = cluster_of(conf)
        self._policies, self._hasher = cluster.policies, cluster.config.hasher
        self._rings = Rings(conf.get("swift_dir", SWIFT_DIR), cluster.policies)
        transport = connections_to_nodes(conf, telemetry_of(conf, name=AGENT))
        self._nodes = DirectClient(transport, AGENT, NodeTimeouts(_CONNECTION_TIMEOUT_S, _NODE_TIMEOUT_S))

    # keys

    def fetch_keys(self, path: EntityPath) -> FetchKeys:
        """Return the function that provides the keys of an object or container."""
        request = Request("HEAD", f"/v1{path.quoted}")
        self._ask_keymasters(request)
        fetch: FetchKeys = request.env[environkeys.FETCH_CRYPTO_KEYS]
        return fetch

    def active_secret(self) -> str:
        """Return the id of the active root secret; raises ``EncryptionKeysUnavailable``."""
        path = EntityPath("account", "container")
        return secret_of({"key_id": self.fetch_keys(path)(None)["id"]})

    # objects

    def pages(self, accounts: Sequence[str], size: int, start: Position | None = None) -> Iterator[Page]:
        """Yield the listings of accounts from a position on; raises ``UnexpectedResponse``."""
        for account in sorted(accounts):
            if account in _ROWS_ONLY or account.startswith(_SHARDS_PREFIX):
                continue
            if start is not None and account < start.account:
                continue
            first = start if start is not None and account == start.account else None
            yield from self._account_pages(account, size, first)

    def _account_pages(self, account: str, size: int, start: Position | None) -> Iterator[Page]:
        begun, marker = ([], "") if start is None else ([start.container], start.container)
        rows = self.client.containers(account, marker=marker)
        for name in chain(begun, (str(row["name"]) for row in rows)):
            path = EntityPath(account, name)
            head = self.client.head(path)
            policy = (
                None
                if head is None
                else self._policies.of_header(head.get(fields.BACKEND_STORAGE_POLICY_INDEX))
            )
            if policy is None:
                continue
            marker = start.marker if start is not None and name == start.container else ""
            for page in self.client.pages(path, size=size, marker=marker):
                yield Page(path, policy, page)

    def copies(self, path: EntityPath, policy: Policy) -> list[BackendResponse | None]:
        """Return the responses to a HEAD of the object on each primary node, None without a response."""
        digest = self._hasher.digest(path.account, path.container, path.obj)
        part, nodes = self._rings.object(policy).nodes(digest)
        return self._nodes.request_all(nodes, part, "HEAD", path, stored_read_headers(policy.index))


class _LastOfKeymasters:
    """The end of a pipeline of keymasters."""

    @classmethod
    def create(cls) -> _LastOfKeymasters:
        """Return one, as the context of an app does."""
        return cls()

    def handle(self, _request: Request) -> Response:
        """Return an empty response."""
        return Response(204)
