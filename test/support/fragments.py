"""Nodes that have fragment archives, or something else, as a test says."""

import json
from dataclasses import replace

from swift.base.timestamp import Timestamp
from swift.cluster.transport import StreamReply
from swift.http import fields
from swift.http.body import WholeBody
from test.support.daemons import node

OLD, NEW = Timestamp(5), Timestamp(6)


class Body(WholeBody):
    """A body that remembers whether it was closed."""

    is_closed = False

    def close(self):
        self.is_closed = True


def archive(index, at=OLD, *, durable=True, etag="e", listed=None, data=b"data", **more):
    """What a node answers that has this archive of the upload ``at``."""
    headers = {
        fields.SYSMETA_EC_FRAG_INDEX: str(index),
        fields.SYSMETA_EC_ETAG: etag,
        fields.BACKEND_DATA_TIMESTAMP: at.internal,
        "content-length": str(len(data)),
    }
    if durable:
        headers[fields.BACKEND_DURABLE_TIMESTAMP] = at.internal
    if listed is not None:
        headers[fields.BACKEND_FRAGMENTS] = listed if isinstance(listed, str) else json.dumps(listed)
    return StreamReply(200, {**headers, **more}, Body(data))


def missing(at=None, status=404):
    """What a node answers that has none, and knows perhaps since when."""
    known = {} if at is None else {fields.BACKEND_TIMESTAMP: at if isinstance(at, str) else at.internal}
    return StreamReply(status, known, Body(b"text"), "Reason")


class Nodes:
    """The primaries in their order, then the handoffs."""

    def __init__(self, primaries, handoffs):
        self.primary_count = primaries
        self.asks_slow = True
        members = [node(n) for n in range(primaries)]
        members += [replace(node(n), index=None) for n in range(primaries, primaries + handoffs)]
        self._left = iter(members)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._left)


class Cluster:
    """What each node answers, one thing after the other; None: it fails."""

    def __init__(self, answers):
        self.answers = [list(answer) if isinstance(answer, tuple) else [answer] for answer in answers]
        self.every = [reply for answer in self.answers for reply in answer if reply is not None]
        self.asked = []
        self.preferences = []
        #: Nodes that answer nobody.
        self.silent = set()
        self.doubted = set()

    def is_silent(self, to):
        return to.id in self.silent

    def doubt(self, to):
        self.doubted.add(to.id)

    def open(self, to, part, method, path, headers, *, query, timeout_s):
        self.asked.append(to.id)
        self.preferences.append(json.loads(headers[fields.BACKEND_FRAGMENT_PREFERENCES]))
        return to

    def reply(self, to, exchange, headers):
        return self.answers[to.id].pop(0)
