"""Keeps the state and the builders of a layout in the cluster, and the lease of the controller.

The state is one document, builders are objects named by the SHA-256 of their content. All changes of the
state are conditional, so two writers never both succeed; the lease only keeps two controllers from working
against each other all the time. A lease ends for others when they have seen it unchanged for its duration by
their own clocks, whatever the time of day is.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable
from typing import NamedTuple, Protocol

from swift.base.clock import Clock
from swift.base.entity import EntityPath
from swift.base.errors import SwiftError
from swift.gateway.documents import Conflict, DocumentStore, StoreUnavailable
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.http.body import BodyError
from swift.layout.seal import StateSeal
from swift.layout.state import DamagedLayout, LayoutState
from swift.ring.builder import RingBuilder
from swift.ring.manifest import FILE_BYTES_MAX

#: The hidden account of a cluster's layout.
ACCOUNT = ".layout"
AGENT = "swift-layout"
STATE_BYTES_MAX = 16 << 20
#: Larger ones cannot be published.
BUILDER_BYTES_MAX = FILE_BYTES_MAX
_STATE, _LEASE, _BUILDERS = "state", "lease", "builders"
_NAME = "layout"
_JSON = {"content-type": "application/json"}
_SIGNED = {"content-type": "application/vnd.swift.layout-state"}
_BLOB = {"content-type": "application/octet-stream"}


class NoLayout(SwiftError):
    """The cluster has no layout yet."""


class Held(NamedTuple):
    """The state and the ETag by which it can be changed."""

    state: LayoutState
    etag: str


class Lease(NamedTuple):
    """The controller that works: its id, a count of its renewals, and its last decision."""

    holder: str
    renewals: int
    decision: str = ""


class LayoutStore(Protocol):
    """Keeps a layout. Methods raise ``StoreUnavailable``."""

    def read(self) -> Held:
        """Return the state; raise ``NoLayout`` and ``DamagedLayout``."""

    def write(self, state: LayoutState, etag: str) -> str:
        """Store a state in place of the one with an ETag, empty for none; raise ``Conflict``."""

    def read_builder(self, name: str) -> RingBuilder:
        """Return a builder; raise ``DamagedLayout``."""

    def add_builder(self, builder: RingBuilder) -> str:
        """Store a builder and return its name."""

    def remove_builders(self, needed: set[str]) -> None:
        """Delete all builders but those."""

    def read_lease(self) -> tuple[Lease | None, str]:
        """Return the lease, None if there is none, and its ETag."""

    def write_lease(self, lease: Lease, etag: str) -> str:
        """Store the lease in place of the one with an ETag; raise ``Conflict``."""


class ClusterLayoutStore:
    """The layout in the hidden account of its cluster."""

    def __init__(
        self, client: InternalClient, seal: StateSeal, *, clock: Clock | None = None, policy: str = ""
    ):
        """``policy`` is that of its containers when they are made; empty: the default one."""
        self._client = client
        self._seal = seal
        self._clock = clock
        self._policy = policy
        self._documents = DocumentStore(client, ACCOUNT, STATE_BYTES_MAX, self._create_containers)

    def _create_containers(self) -> None:
        try:
            # Accounts whose names begin with a point are made with their first container.
            headers = {"x-storage-policy": self._policy} if self._policy else {}
            for container in (_STATE, _LEASE, _BUILDERS):
                self._client.create(EntityPath(ACCOUNT, container), headers)
        except UnexpectedResponse as error:
            raise StoreUnavailable(f"cannot create {ACCOUNT}: {error}")

    def read(self) -> Held:
        """Return the state; raise ``NoLayout``, ``DamagedLayout`` and LayoutError."""
        content, etag = self._documents.read(_STATE, _NAME)
        if content is None:
            raise NoLayout("the cluster has no layout yet: import its rings with swift-layout init")
        return Held(LayoutState.from_document(self._seal.check(content)), etag)

    def write(self, state: LayoutState, etag: str) -> str:
        """Store a state in place of the one with an ETag, empty for none; raise ``Conflict``."""
        return self._documents.write(_STATE, _NAME, self._seal.sign(state.to_document()), etag, _SIGNED)

    def read_builder(self, name: str) -> RingBuilder:
        """Return a builder; raise ``DamagedLayout``."""
        path = EntityPath(ACCOUNT, _BUILDERS, name)
        try:
            with self._client.request("GET", path, {"x-newest": "true"}) as response:
                packed = response.read_body(BUILDER_BYTES_MAX)
        except (UnexpectedResponse, BodyError) as error:
            raise StoreUnavailable(f"cannot read builder {name}: {error}")
        return builder_of(packed, name, self._clock)

    def add_builder(self, builder: RingBuilder) -> str:
        """Store a builder and return its name."""
        packed, name = packed_builder(builder)
        path = EntityPath(ACCOUNT, _BUILDERS, name)
        try:
            for attempt in (1, 2):
                with self._client.request("PUT", path, _BLOB, packed, accept=(2, 404)) as response:
                    if response.is_success:
                        return name
                if attempt == 1:
                    self._create_containers()
        except UnexpectedResponse as error:
            raise StoreUnavailable(f"cannot store builder {name}: {error}")
        raise StoreUnavailable(f"cannot store builder {name}: its container cannot be created")

    def remove_builders(self, needed: set[str]) -> None:
        """Delete all builders but those."""
        try:
            for row in list(self._client.objects(ACCOUNT, _BUILDERS)):
                if row["name"] not in needed:
                    self._client.delete(EntityPath(ACCOUNT, _BUILDERS, str(row["name"])))
        except UnexpectedResponse as error:
            raise StoreUnavailable(f"cannot remove builders: {error}")

    def read_lease(self) -> tuple[Lease | None, str]:
        """Return the lease, None if there is none, and its ETag."""
        content, etag = self._documents.read(_LEASE, _NAME)
        if content is None:
            return None, etag
        try:
            tree = json.loads(content)
            return Lease(str(tree["holder"]), int(tree["renewals"]), str(tree.get("decision", ""))), etag
        except (ValueError, TypeError, KeyError, RecursionError):
            return None, etag

    def write_lease(self, lease: Lease, etag: str) -> str:
        """Store the lease in place of the one with an ETag; raise ``Conflict``."""
        return self._documents.write(_LEASE, _NAME, json.dumps(lease._asdict()).encode(), etag, _JSON)

    def __repr__(self) -> str:
        return f"ClusterLayoutStore({ACCOUNT!r})"


def packed_builder(builder: RingBuilder) -> tuple[bytes, str]:
    """Return the compressed file of a builder, and its name: the SHA-256 of the file."""
    content = builder.to_bytes()
    return gzip.compress(content, compresslevel=6, mtime=0), hashlib.sha256(content).hexdigest()


def builder_of(packed: bytes, name: str, clock: Clock | None = None) -> RingBuilder:
    """Return a builder that was packed; raise ``DamagedLayout``."""
    inflater = zlib.decompressobj(wbits=31)
    try:
        content = inflater.decompress(packed, BUILDER_BYTES_MAX)
    except zlib.error as error:
        raise DamagedLayout(f"builder {name} is damaged: {error}")
    if not inflater.eof:
        raise DamagedLayout(f"builder {name} is cut off, or larger than {BUILDER_BYTES_MAX} bytes")
    if hashlib.sha256(content).hexdigest() != name:
        raise DamagedLayout(f"builder {name} is damaged: its checksum differs")
    return RingBuilder.from_bytes(content, name, clock=clock)


class BuilderCache:
    """The builders that a controller uses again and again."""

    def __init__(self, store: LayoutStore):
        self._store = store
        self._known: dict[str, RingBuilder] = {}

    def read(self, name: str) -> RingBuilder:
        """Return a builder, which must not be changed; raise ``StoreUnavailable`` and ``DamagedLayout``."""
        builder = self._known.get(name)
        if builder is None:
            builder = self._known[name] = self._store.read_builder(name)
        return builder

    def add(self, builder: RingBuilder) -> str:
        """Store a builder and return its name; raise ``StoreUnavailable``."""
        name = self._store.add_builder(builder)
        self._known[name] = builder
        return name

    def keep(self, names: set[str]) -> None:
        """Forget all builders but those."""
        self._known = {name: each for name, each in self._known.items() if name in names}

    def __repr__(self) -> str:
        return f"<BuilderCache of {len(self._known)}>"


class LeaseKeeper:
    """Keeps the lease of one controller.

    ``monotonic`` is a clock of this machine; ``duration_s`` is the time after which an unchanged lease of
    another controller has ended.
    """

    def __init__(self, store: LayoutStore, holder: str, duration_s: float, monotonic: Callable[[], float]):
        self._store = store
        self._holder = holder
        self._duration_s = duration_s
        self._monotonic = monotonic
        self._seen: tuple[Lease | None, float] | None = None

    def hold(self, decision: str = "") -> bool:
        """Renew or take the lease, with a last decision; return False while another controller has it.

        Raises ``StoreUnavailable``.
        """
        lease, etag = self._store.read_lease()
        now = self._monotonic()
        if lease is not None and lease.holder != self._holder:
            if self._seen is None or self._seen[0] != lease:
                self._seen = lease, now
            if now - self._seen[1] < self._duration_s:
                return False
        renewals = 0 if lease is None else lease.renewals + 1
        try:
            self._store.write_lease(Lease(self._holder, renewals, decision), etag)
        except Conflict:
            return False
        return True

    def __repr__(self) -> str:
        return f"<LeaseKeeper {self._holder}>"
