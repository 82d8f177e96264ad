"""Pages of strong listings, asked of all primaries of the containers that have the rows (decision 0017)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from urllib.parse import quote

from swift import green
from swift.base.entity import EntityPath
from swift.base.errors import InvalidValue
from swift.base.truth import is_true
from swift.cluster.quorum import majority
from swift.cluster.transport import BackendResponse
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.proxy.backend import Backends, backend_headers
from swift.proxy.context import ProxyContext
from swift.proxy.heldrows import Told, held_page, told_of
from swift.proxy.surelisting import Merged, merge

UNSHARDED = "unsharded"
_OBJECT, _HELD = "object", "held"


class BeingSplit(Exception):
    """Some of the container's rows are, or were, in shards, so that its own are not all."""


class CannotTell(Exception):
    """Too many servers of a split container do not say all that they hold: they are the peer's."""


class SurePages:
    """Pages of one container for one request."""

    def __init__(self, context: ProxyContext, backends: Backends, request: Request, path: EntityPath):
        self._context = context
        self._backends = backends
        self._path = path
        self._sent = backend_headers(context, request, transfer=True)

    def of_replicas(self, params: Mapping[str, str], wanted: int) -> Merged:
        """A page of a container that was never split; raises ``BeingSplit`` and ``HTTPError`` 503."""
        sent = {**self._sent, fields.BACKEND_RECORD_TYPE: _OBJECT, fields.BACKEND_SHARDS_KNOWN: "true"}
        count, everybody = self._ask(self._path, sent, _query(params, wanted))
        answers = [answer for answer in everybody if answer.status in (200, 204)]
        if any(_knows_shards(answer) for answer in answers):
            raise BeingSplit
        if len(answers) < majority(count):
            raise HTTPError(503)
        pages = [json.loads(answer.body or b"[]") for answer in answers]
        return merge(pages, wanted, reverse=is_true(params.get("reverse")))

    def of_all_holders(self, policy_index: str, params: Mapping[str, str], wanted: int) -> Merged:
        """A page of one that is or was split; raises ``CannotTell`` and ``HTTPError`` 503."""
        sent = {
            **self._sent,
            fields.BACKEND_RECORD_TYPE: _HELD,
            fields.BACKEND_STORAGE_POLICY_INDEX: policy_index,
            fields.BACKEND_OVERRIDE_DELETED: "true",
        }
        root = f"{self._path.account}/{self._path.container}"
        return held_page(partial(self._ask_holders, sent), root, params, wanted)

    def _ask_holders(
        self, sent: HeaderMap, name: str, params: Mapping[str, str], wanted: int, may_lack: bool
    ) -> list[Told]:
        account, _, container = name.partition("/")
        count, answers = self._ask(EntityPath(account, container), sent, _query(params, wanted))
        told, are_dumb = [], False
        for answer in answers:
            if answer.status == 404 and may_lack:
                told.append(Told([], "", []))
            elif answer.headers.get(fields.BACKEND_RECORD_TYPE) == _HELD and answer.status == 200:
                try:
                    told.append(told_of(answer.body))
                except InvalidValue:
                    continue
            elif answer.status in (200, 204):
                are_dumb = True
        if len(told) >= majority(count):
            return told
        if are_dumb:
            raise CannotTell
        raise HTTPError(503)

    def _ask(self, path: EntityPath, sent: HeaderMap, query: str) -> tuple[int, list[BackendResponse]]:
        """How many primaries a container has, and what those that can be asked answer."""
        view = self._context.rings.container.view()
        part = view.partition_of(self._context.hasher.digest(path.account, path.container))
        nodes = view.primaries(part)
        requests = [self._backends.make_request(node, part, "GET", path, sent, query) for node in nodes]
        answers = green.gather([partial(self._backends.request, request) for request in requests])
        return len(nodes), [answer for answer in answers if answer is not None]


def _knows_shards(answer: BackendResponse) -> bool:
    state = answer.headers.get(fields.BACKEND_SHARDING_STATE, UNSHARDED)
    return state != UNSHARDED or is_true(answer.headers.get(fields.BACKEND_SHARDS_KNOWN))


def _query(params: Mapping[str, str], limit: int) -> str:
    pairs = {**params, "format": "json", "limit": str(limit)}.items()
    return "&".join(f"{name}={quote(text.encode(), safe='')}" for name, text in pairs)
