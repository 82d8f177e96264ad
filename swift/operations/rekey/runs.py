"""Walks of ``swift-rekey``: count root secrets in use, rewrite objects, verify that a secret is unused."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from swift import green
from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.base.errors import ConfigError
from swift.gateway.internal_client import UnexpectedResponse
from swift.http.cryptokeys import KeyServiceUnavailable
from swift.middleware.encryption.rewrap import listed_secret
from swift.operations.rekey.rawcluster import Page, Position, RawCluster
from swift.operations.rekey.rewriting import OBJECT_ERRORS, Outcome, Rewriter, used_secrets
from swift.telemetry.recon import replace_text

#: Rows of one page of a walk that only counts.
PAGE_ROWS = 1000
#: Objects of one page of a run for each that is rewritten at the same time.
_TURNS = 8
STATE_VERSION = 1
FAILED, UNFINISHED = "failed", "unfinished"
_PAUSE_S = 0.5


class ContainerUsage(NamedTuple):
    """Objects and bytes of one root secret in one container; ``secret`` is empty for unencrypted ones."""

    policy: str
    account: str
    container: str
    secret: str
    objects: int
    bytes: int


def secret_usage(pages: Iterable[Page], tell: Callable[[str], None]) -> Iterator[ContainerUsage]:
    """Yield the use of root secrets by container, from the rows of listings; raises ``CryptoError``."""
    counts: dict[str, list[int]] = {}
    current: Page | None = None
    for page in pages:
        if current is not None and page.container != current.container:
            yield from _container_usage(current, counts)
            counts = {}
        current = page
        for row in page.rows:
            count = counts.setdefault(listed_secret(row.get("hash")), [0, 0])
            count[0] += 1
            count[1] += int(row.get("bytes") or 0)
        tell(f"{page.container}: {sum(count[0] for count in counts.values())} objects")
    if current is not None:
        yield from _container_usage(current, counts)


def _container_usage(page: Page, counts: dict[str, list[int]]) -> Iterator[ContainerUsage]:
    path = page.container
    for secret, (objects, size) in sorted(counts.items()):
        yield ContainerUsage(page.policy.name, path.account, str(path.container), secret, objects, size)


class Pace:
    """Limit of the bytes a second of all green threads together; 0: none."""

    def __init__(self, per_second: float, stopped: Callable[[], bool]):
        self._per_second = per_second
        self._stopped = stopped
        self._next_s = time.monotonic()

    def __call__(self, amount: int) -> None:
        """Wait until so many more may be read, or the run is to stop."""
        if not self._per_second:
            return
        self._next_s = max(self._next_s, time.monotonic() - 1) + amount / self._per_second
        until_s = self._next_s
        while (left_s := until_s - time.monotonic()) > 0 and not self._stopped():
            green.sleep(min(left_s, _PAUSE_S))


@dataclass
class RunState:
    """Progress of a run, which its file keeps for the next one."""

    old: str
    new: str
    position: Position | None = None
    counts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, path: str, old: str, new: str) -> RunState:
        """Return the state in a file, or that of a new run; raises ``ConfigError`` for another run's."""
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return cls(old, new)
        try:
            stored = json.loads(text)
            known = (stored["version"], stored["from"], stored["to"])
            position = None if stored["position"] is None else Position(*map(str, stored["position"]))
            state = cls(old, new, position, Counter(stored["counts"]))
        except (ValueError, TypeError, KeyError):
            raise ConfigError(f"{path} is no state of a run; remove it to begin again")
        if known != (STATE_VERSION, old, new):
            raise ConfigError(
                f"{path} is of a run from {known[1]} to {known[2]}, not from {old} to {new}; "
                "finish that one, remove the file, or name another with --state"
            )
        return state

    def write(self, path: str) -> None:
        """Write the state to a file; raises OSError."""
        facts = {
            "version": STATE_VERSION,
            "from": self.old,
            "to": self.new,
            "position": self.position,
            "counts": self.counts,
        }
        replace_text(path, json.dumps(facts) + "\n")


class RekeyRun:
    """Rewrites the objects of a root secret, a page at a time."""

    def __init__(
        self,
        cluster: RawCluster,
        state: RunState,
        state_path: str,
        *,
        concurrency: int,
        rate: float,
        stopped: Callable[[], bool],
        report: Callable[[str, str, str], None],
        tell: Callable[[str], None],
    ):
        """``report`` gets outcome, path and reason of each object that keeps the old secret."""
        self._cluster = cluster
        self._state = state
        self._state_path = state_path
        self._concurrency = concurrency
        self._stopped = stopped
        self._report = report
        self._tell = tell
        self._rewriter = Rewriter(cluster, state.old, Pace(rate, stopped))

    def run(self, accounts: Sequence[str]) -> bool:
        """Rewrite; return False if it was stopped before the end.

        Raises ``UnexpectedResponse``, ``KeyServiceUnavailable`` and OSError; the next run goes on.
        """
        state = self._state
        state.write(self._state_path)
        for page in self._cluster.pages(accounts, self._concurrency * _TURNS, state.position):
            outcomes = green.bounded_map(partial(self._rewrite, page), page.rows, self._concurrency)
            if UNFINISHED in outcomes:
                return False
            state.counts.update(outcomes)
            state.position = page.end
            state.write(self._state_path)
            done = ", ".join(f"{number} {name}" for name, number in sorted(state.counts.items()))
            self._tell(f"{page.container}: {done}")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._state_path)
        return True

    def _rewrite(self, page: Page, row: JsonObject) -> str:
        if self._stopped():
            return UNFINISHED
        path = page.container._replace(obj=str(row["name"]))
        try:
            outcome = self._rewriter.rewrite(path, int(row.get("bytes") or 0))
        except KeyServiceUnavailable:
            # The other objects would fail as well; the page is tried again by the next run.
            raise
        except (UnexpectedResponse, *OBJECT_ERRORS) as error:
            self._report(FAILED, str(path), str(error))
            return FAILED
        if outcome is Outcome.LOCKED:
            self._report(outcome, str(path), "a node does not let the locked object be stored again")
        return outcome


class Verification(NamedTuple):
    """Result of a search for a root secret."""

    objects: int
    #: Objects of which a copy uses the secret, rows that do, and objects not all of whose nodes responded.
    using: int
    rows: int
    unchecked: int

    @property
    def is_unused(self) -> bool:
        """Return True if everything was looked at, and nothing uses the secret."""
        return not (self.using or self.rows or self.unchecked)


class Verifier:
    """Searches a root secret in all copies of all objects, and in the rows of listings."""

    def __init__(self, cluster: RawCluster, secret: str, report: Callable[[str, str, str], None]):
        """``report`` gets what was found, the path and the reason."""
        self._cluster = cluster
        self._secret = secret
        self._report = report
        self._found: Counter[str] = Counter()

    def verify(self, pages: Iterable[Page], concurrency: int, tell: Callable[[str], None]) -> Verification:
        """Look at every object; raises ``UnexpectedResponse``."""
        found = self._found
        for page in pages:
            green.bounded_map(partial(self._look, page), page.rows, concurrency)
            tell(f"{page.container}: {found['objects']} objects, {found['using']} use {self._secret}")
        return Verification(found["objects"], found["using"], found["rows"], found["unchecked"])

    def _look(self, page: Page, row: JsonObject) -> None:
        path = page.container._replace(obj=str(row["name"]))
        self._found["objects"] += 1
        try:
            if listed_secret(row.get("hash")) == self._secret:
                self._add("rows", path, "its row in the listing uses the secret")
            copies = self._cluster.copies(path, page.policy)
            if self._secret in used_secrets(copy.headers for copy in copies if copy and copy.is_success):
                self._add("using", path, "a copy uses the secret")
            elif not all(copy and (copy.is_success or copy.status == 404) for copy in copies):
                self._add("unchecked", path, "a node did not respond")
        except OBJECT_ERRORS as error:
            self._add("unchecked", path, str(error))

    def _add(self, kind: str, path: EntityPath, reason: str) -> None:
        self._found[kind] += 1
        self._report(kind, str(path), reason)
