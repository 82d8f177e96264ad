"""Bringing one node's copy of a database up to date with ours (spec: account-container.md §13 "Sender").

The session asks what the node has, learns what it knows better, and sends what it lacks: nothing, rows in
batches, or the whole database. What happened is counted under the peer's names.
"""

from __future__ import annotations

import json
import os
from typing import Any

from swift.base.documents import JsonObject
from swift.base.errors import InvalidValue, SwiftError
from swift.base.timestamp import Timestamp
from swift.cluster.transport import BackendResponse
from swift.db import files
from swift.db.syncpoints import all_syncs, get_sync, set_sync
from swift.dbsync import protocol
from swift.dbsync.protocol import RemoteState
from swift.dbsync.receivedfiles import snapshot
from swift.dbsync.remote import NodeFailed, RemoteDatabase, success
from swift.dbsync.replica import Replica
from swift.dbsync.settings import ReplicatorSettings
from swift.runtime.report import Counters


class RemoteUnmounted(SwiftError):
    """The node's device cannot be used; a handoff may take the database meanwhile."""


class ReplicationSession:
    """One conversation; call ``run`` once."""

    def __init__(
        self,
        replica: Replica,
        remote: RemoteDatabase,
        settings: ReplicatorSettings,
        counters: Counters,
        *,
        now: Timestamp,
        many_policies: bool = False,
    ):
        self._replica = replica
        self._remote = remote
        self._settings = settings
        self._counters = counters
        self._now = now
        self._many_policies = many_policies

    def run(self) -> None:
        """Make the node's copy equal ours; returns when it is.

        Raises ``NodeFailed`` when that did not succeed (yet), ``RemoteUnmounted``, and the errors of
        ``db.connection`` about our own database.
        """
        replica = self._replica
        info = replica.broker.read(replica.info)
        reply = self._sync(info)
        if reply.status == 404:
            self._counters.add("rsyncs")
            if self._install_whole(info):
                return
            reply = self._sync(info)
        remote = _state_of(reply)
        self._learn(remote)
        if remote.shard_max_row is not None:
            self._exchange_ranges(remote, info)
            if replica.broker.read(replica.is_being_split):
                self._counters.add("deferred")
                return
        self._send_rows(remote, info)

    def _sync(self, info: JsonObject) -> BackendResponse:
        arguments = self._replica.sync_arguments(info, many_policies=self._many_policies)
        reply = self._remote.say(protocol.SYNC, *arguments)
        if reply.status == 507:
            raise RemoteUnmounted(f"{self._remote.node.replication_key} is not mounted")
        return reply

    # --- facts -------------------------------------------------------------------------------------

    def _learn(self, remote: RemoteState) -> None:
        replica = self._replica
        if replica.broker.read(lambda connection: replica.lacks(connection, remote)):
            replica.broker.write(lambda connection: replica.adopt(connection, remote, self._now))

    def _exchange_ranges(self, remote: RemoteState, info: dict[str, object]) -> None:
        replica, there = self._replica, self._remote
        if remote.shard_max_row is not None and remote.shard_max_row >= 0:
            theirs = _parsed(there.tell(protocol.GET_SHARD_RANGES))
            if not isinstance(theirs, list):
                raise NodeFailed("shard ranges must come as a list")
            try:
                replica.broker.write(lambda connection: replica.merge_ranges(connection, theirs))
            except InvalidValue as error:
                raise NodeFailed(f"its shard ranges are invalid: {error}")
        ours = replica.broker.read(replica.ranges)
        if ours:
            there.tell(protocol.MERGE_SHARD_RANGES, ours, info["id"])

    # --- rows --------------------------------------------------------------------------------------

    def _send_rows(self, remote: RemoteState, info: JsonObject) -> None:
        replica = self._replica
        known = replica.broker.read(lambda connection: get_sync(connection, remote.id, incoming=False))
        point = max(remote.point, known)
        if point >= info["max_row"]:
            self._counters.add("no_changes")
            return
        if remote.hash == info["hash"]:
            self._counters.add("hashmatches")
            if remote.point > known:
                self._remember(remote.id, remote.point)
            return
        if remote.is_much_behind(info["max_row"], self._settings.per_diff) and self._merge_whole(info):
            return
        self._counters.add("diffs")
        self._send_batches(remote, info["id"], point)

    def _merge_whole(self, info: dict[str, object]) -> bool:
        """Send the whole database to be merged; whether the node did. If not, rows will do in time."""
        self._counters.add("remote_merges")
        try:
            success(protocol.RSYNC_THEN_MERGE, self._send_whole(protocol.RSYNC_THEN_MERGE, info))
        except NodeFailed:
            return False
        return True

    def _send_batches(self, remote: RemoteState, own_id: str, point: int) -> None:
        replica, per_diff = self._replica, self._settings.per_diff

        def batch_after(start: int) -> tuple[str, int]:
            return replica.broker.read(
                lambda connection: replica.rows.message_since(connection, start, per_diff)
            )

        sent = 0
        while (batch := batch_after(point))[1] > point:
            if sent == self._settings.max_diffs:
                self._counters.add("diff_caps")
                raise NodeFailed(f"{sent} messages of rows were sent; the next pass sends the rest")
            text, point = batch
            self._remote.send_items(text, own_id)
            sent += 1
        syncs = replica.broker.read(lambda connection: all_syncs(connection, incoming=True))
        self._remote.tell(protocol.MERGE_SYNCS, syncs)
        self._remember(remote.id, point)

    def _remember(self, remote_id: str, point: int) -> None:
        self._replica.broker.write(lambda connection: set_sync(connection, remote_id, point, incoming=False))

    # --- whole databases ---------------------------------------------------------------------------

    def _install_whole(self, info: JsonObject) -> bool:
        """Give the node a database that it lacks; False when the node has got one meanwhile.

        Another replica or a client's PUT may create it between the questions: then the rows are merged.
        """
        reply = self._send_whole(protocol.COMPLETE_RSYNC, info)
        if reply.status != 404:
            success(protocol.COMPLETE_RSYNC, reply)
        return reply.is_success

    def _send_whole(self, operation: str, info: JsonObject) -> BackendResponse:
        broker = self._replica.broker
        path = broker.newest.path
        copy = broker.call(snapshot, broker.place, path)
        try:
            worth_s = self._remote.bring(copy, info["id"])
        finally:
            broker.call(files.remove_if_there, copy)
        if operation == protocol.RSYNC_THEN_MERGE:
            worth_s += info["max_row"] / protocol.MERGED_ROWS_PER_SECOND
        return self._remote.say(operation, info["id"], os.path.basename(path), more_time_s=worth_s)


def _parsed(reply: BackendResponse) -> Any:
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError):
        raise NodeFailed("its response is not JSON")


def _state_of(reply: BackendResponse) -> RemoteState:
    if not reply.is_success:
        raise NodeFailed(f"sync failed with {reply.status} {reply.reason}")
    try:
        return RemoteState.of_mapping(_parsed(reply))
    except InvalidValue as error:
        raise NodeFailed(f"its response is invalid: {error}")
