"""Finishing completions of multipart uploads that broke off after their decision (decision 0020)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

from swift.base.entity import EntityPath
from swift.base.etag import unquote_etag
from swift.gateway.internal_client import InternalClient
from swift.s3.lifecycle.ending import CHANGED, ENDED, KEPT
from swift.s3.lifecycle.parts import DaemonObjects
from swift.s3.lifecycle.registry import RegisteredBucket
from swift.s3.lifecycle.walk import page_of
from swift.s3.names import segments_of
from swift.s3.uploads import number_of
from swift.s3.uploadstate import (
    CompletionDecision,
    DecisionStanding,
    UploadState,
    end,
    forget,
    is_refused,
    join,
    read_state,
    standing,
)

#: A completion is under way for so long, seconds; it is finished for its client after that.
UNDER_WAY_S = 3600.0


class Unfinished(NamedTuple):
    """An upload whose completion may have been decided."""

    entry: RegisteredBucket
    key: str
    upload_id: str


class Finishing:
    """Finds decisions, and carries out one after another; raises ``UnexpectedAnswer``."""

    def __init__(
        self, client: InternalClient, now: Callable[[], float], page_size: int, age_s: float = UNDER_WAY_S
    ):
        self._client = client
        self._now = now
        self._page_size = page_size
        self._age_s = age_s

    def find(self, entry: RegisteredBucket) -> Iterator[Unfinished]:
        """Uploads whose markers say something, which those of new uploads do not."""
        home = EntityPath(entry.account, segments_of(entry.bucket))
        marker = ""
        while rows := page_of(self._client, home, self._page_size, marker=marker):
            for row in rows:
                marker = str(row["name"])
                key, _, upload_id = marker.rpartition("/")
                if key and row["bytes"] and number_of(upload_id) is None:
                    yield Unfinished(entry, key, upload_id)

    def finish(self, unit: Unfinished) -> str:
        """Store the object of a decision, if that may still be done, and end the upload."""
        objects = DaemonObjects(self._client, unit.entry.account)
        state = read_state(objects, unit.entry.bucket, unit.key, unit.upload_id)
        decision = None if state is None else state.record.decision
        if state is None or decision is None:
            return CHANGED
        if decision.age_s(self._now()) < self._age_s:
            return KEPT
        state = join(objects, state)
        if state is None or state.record.decision is None:
            return CHANGED
        found = standing(objects, state, self._now())
        if found is DecisionStanding.TO_DO and self._store(objects, state, state.record.decision):
            found = DecisionStanding.DONE
        if found is DecisionStanding.DONE:
            forget(objects, state)
        else:
            # The parts stay for ``Leftovers``, which asks whether an object has them.
            end(objects, state)
        return ENDED

    def _store(self, objects: DaemonObjects, state: UploadState, decision: CompletionDecision) -> bool:
        """Store the manifest; return False if its parts or its conditions do not allow that."""
        places = state.places([number for number, _ in decision.parts])
        sizes = []
        for (container, name), (_, etag) in zip(places, decision.parts, strict=True):
            head = objects.send("HEAD", container, name)
            if not head.is_success or unquote_etag(head.headers.get("etag", "")) != etag:
                return False
            sizes.append(int(head.headers.get("content-length") or 0))
        is_small = any(size < decision.size_min for size in sizes[:-1])
        if is_small or decision.size not in (None, sum(sizes)):
            return False
        manifest = [
            {"path": f"/{container}/{name}", "etag": etag}
            for (container, name), (_, etag) in zip(places, decision.parts, strict=True)
        ]
        headers = {**decision.headers, "x-timestamp": decision.at}
        body = json.dumps(manifest).encode()
        query = "multipart-manifest=put"
        answer = objects.send("PUT", state.bucket, state.key, headers, body, query=query)
        return not is_refused(answer.status) and answer.status < 500
