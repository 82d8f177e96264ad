"""Completion of an upload that only some nodes have committed.

Its writer failed after it told some nodes to commit. The other nodes keep their archives, so the object can
be read as soon as enough archives are there. It is then uploaded once more, with its own timestamp, to the
nodes that lack it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from swift.base.timestamp import Timestamp
from swift.cluster.placement import NodeIterator
from swift.http.body import BodyError
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.http.transform import as_request_body
from swift.proxy.backend import Backends
from swift.proxy.context import ProxyContext
from swift.proxy.obj.commit.phases import confirm
from swift.proxy.obj.commit.stored import has_version, reported_version, stored_headers, stored_read_headers
from swift.proxy.obj.commit.targets import TargetOpener, open_targets
from swift.proxy.obj.location import ObjectLocation, WriteLocation
from swift.proxy.obj.write.ec import ArchiveCoder
from swift.ring.device import Node

#: Reads an erasure coded object; the headers are those for the backends.
Read = Callable[[Request, ObjectLocation, HeaderMap], Response]


class ArchiveRestorer:
    """Restores a version on nodes that lack it."""

    def __init__(self, context: ProxyContext, backends: Backends, read: Read, coder: ArchiveCoder):
        self._context = context
        self._backends = backends
        self._read = read
        self._coder = coder

    def restore(
        self, location: WriteLocation, version: Timestamp, outdated: Sequence[Node], need: int
    ) -> list[Node]:
        """Return the outdated nodes that have it now; none if it is unreadable or fewer than ``need`` can
        take it.
        """
        base = stored_read_headers(location.policy.index)
        read_request = Request("GET", location.path.quoted, {"x-newest": "true"})
        found = self._read(read_request, location, dict(base))
        with as_request_body(found) as body:
            if found.status != 200 or reported_version(found) != version:
                return []
            sent = {**stored_headers(found.headers), **base, "x-timestamp": version.internal}
            write_request = Request("PUT", location.path.quoted, sent, body)
            try:
                return self._write(write_request, location, outdated, need)
            except (BodyError, HTTPError) as error:
                self._backends.log_error(f"{location.path} cannot be completed on all nodes: {error}", base)
                return []

    def _write(
        self, request: Request, location: WriteLocation, outdated: Sequence[Node], need: int
    ) -> list[Node]:
        framing = self._coder.framing(request, is_conditional=False)
        attempts = [dict(request.headers) for _ in outdated]
        self._coder.frame(attempts, location, framing, request.body.length)
        nodes = NodeIterator(outdated, iter(()), self._context.health, len(outdated))
        targets, early = open_targets(TargetOpener(self._backends, location, nodes, framing), attempts, need)
        try:
            self._coder.start(request, location, framing, targets, need).send()
            grace_s = self._context.settings.post_quorum_timeout
            responses = [*early, *confirm(targets, framing, need=need, grace_s=grace_s)]
        finally:
            for target in targets:
                target.abandon()
        version = request.timestamp
        return [a.node for a in responses if a.node is not None and has_version(a, version)]
