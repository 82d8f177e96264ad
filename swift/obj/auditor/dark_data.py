"""The watcher ``dark_data``: objects that no container listing has (spec: replication.md §7).

Clients cannot find such objects, and no account is charged for them. Usually their container was deleted
while a device was away. The watcher requests the row from every primary of the container, because one primary
without the row proves nothing. While a primary does not respond, the object's state is unknown.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from urllib.parse import quote

from swift.base.entity import EntityPath
from swift.base.errors import ConfigError
from swift.base.hashing import PathHasher
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.cluster.direct import DirectClient, log_no_response
from swift.cluster.rings import Rings
from swift.cluster.transport import BackendResponse
from swift.compose import daemon_context
from swift.config.common import ServerSettings
from swift.http import fields
from swift.obj.auditor.settings import DarkDataSettings
from swift.obj.auditor.watchers import DeleteRequest, QuarantineRequest, Watcher
from swift.ring.ring import Ring

_ACTIONS = ("log", "delete", "quarantine")


class Unknown(Exception):
    """A server did not answer, so nothing is known."""


class Listings:
    """Asks all primaries of a container whether any lists an object."""

    def __init__(
        self,
        direct: DirectClient,
        ring: Ring,
        hasher: PathHasher,
        rng: random.Random,
        shards_max: int,
    ):
        self._direct = direct
        self._ring = ring
        self._hasher = hasher
        self._rng = rng
        self._shards_max = shards_max

    def contains(self, account: str, container: str, obj: str) -> bool:
        """Return True if a primary lists the object; raises ``Unknown``."""
        seen: list[tuple[str, str]] = []
        waiting = [(account, container)]
        while waiting:
            where = waiting.pop()
            if len(seen) > self._shards_max:
                raise Unknown(f"{account}/{container} has too many shards")
            record_type = "object" if where in seen else "auto"
            seen.append(where)
            for rows, are_shards in self._rows_of(where, obj, record_type):
                names = [row.get("name") for row in rows if isinstance(row, dict)]
                if not are_shards and obj in names:
                    return True
                if are_shards:
                    shards = [name.partition("/") for name in names if isinstance(name, str)]
                    waiting += [(a, c) for a, slash, c in shards if slash and (a, c) not in waiting]
        return False

    def _rows_of(self, where: tuple[str, str], obj: str, record_type: str) -> list[tuple[list[object], bool]]:
        """Return each primary's rows at the object's place, and whether these are shards."""
        part, primaries = self._ring.nodes(self._hasher.digest(*where))
        nodes = list(primaries)
        self._rng.shuffle(nodes)
        name = quote(obj)
        query = f"prefix={name}&limit=1&includes={name}&states=listing&format=json"
        headers = {fields.BACKEND_RECORD_TYPE: record_type}
        found = []
        for node in nodes:
            reply = self._direct.request_entity(node, part, "GET", EntityPath(*where), dict(headers), query)
            if reply is None or not (reply.is_success or reply.status == 404):
                raise Unknown(f"{node.replication_key} sent no listing")
            if reply.is_success:
                found.append((_json_of(reply), reply.headers.get(fields.BACKEND_RECORD_TYPE) == "shard"))
        return found


def _json_of(reply: BackendResponse) -> list[object]:
    try:
        rows = json.loads(reply.body or b"[]")
    except (ValueError, RecursionError):
        raise Unknown("a listing is not JSON")
    if not isinstance(rows, list):
        raise Unknown("a listing is not a list")
    return rows


class DarkData(Watcher):
    """Looks every object up; what is dark is logged, removed or quarantined, as ``action`` says."""

    def __init__(self, conf: Mapping[str, object], logger: object, listings: Listings | None = None):
        super().__init__(conf, logger)
        self._settings = DarkDataSettings.parse(
            {name: str(value) for name, value in conf.items()},
            source="[object-auditor:watcher:dark_data]",
        )
        if self._settings.action not in _ACTIONS:
            raise ConfigError(f"dark_data: action must be one of {', '.join(_ACTIONS)}")
        self._listings = listings or self._make_listings(conf)
        self._is_looking = False
        self._counts = dict.fromkeys(("ok", "dark", "unknown"), 0)

    def _make_listings(self, conf: Mapping[str, object]) -> Listings:
        texts = {name: str(value) for name, value in conf.items()}
        context = daemon_context(texts, name="object-auditor")

        direct = DirectClient(
            context.transport,
            "object-auditor",
            self._settings,
            on_no_response=log_no_response(lambda text: self.logger.warning(f"dark_data: {text}")),
        )
        rings = Rings(ServerSettings.parse(texts).swift_dir, context.policies, report=self.logger.error)
        return Listings(direct, rings.container, context.hasher, random.Random(), self._settings.shards_max)

    def start(self, audit_type: str, **_more: object) -> None:
        """Only full passes are worth the questions."""
        self._is_looking = audit_type == "ALL"
        self._counts = dict.fromkeys(self._counts, 0)

    def see_object(self, object_metadata: dict[str, str], data_file_path: str, **_more: object) -> None:
        """Look it up."""
        if not self._is_looking:
            return
        verdict = self._verdict(object_metadata)
        self._counts[verdict] += 1
        if verdict != "dark":
            return
        text = f"dark_data: {object_metadata.get('name')} is in no listing ({data_file_path})"
        if self._settings.action == "delete":
            raise DeleteRequest(text)
        if self._settings.action == "quarantine":
            raise QuarantineRequest(text)
        self.logger.warning(text)

    def _verdict(self, metadata: dict[str, str]) -> str:
        try:
            written = Timestamp(metadata.get("X-Timestamp"))
            _, account, container, obj = metadata["name"].split("/", 3)
        except (InvalidTimestamp, KeyError, ValueError):
            return "unknown"
        if written.seconds + self._settings.grace_age >= time.time():
            return "ok"
        try:
            return "ok" if self._listings.contains(account, container, obj) else "dark"
        except Unknown as error:
            self.logger.info(f"dark_data: {metadata['name']}: {error}")
            return "unknown"

    def end(self, **_more: object) -> None:
        """Log the counts."""
        if self._is_looking:
            found = ", ".join(f"{count} {name}" for name, count in self._counts.items())
            self.logger.info(f"dark_data: found {found}")
