"""Random histories of a few replicas in memory: what happens to them, and messages between them that get
lost, come twice or late. The replicas are the real ones on SQLite; only files and HTTP are left out.
"""

from swift.account.broker import AccountBroker
from swift.account.replication import replica_of as account_replica
from swift.account.schema import create_tables as create_account_tables
from swift.base.timestamp import Timestamp
from swift.container.broker import ContainerBroker, set_policy
from swift.container.replication import ContainerReplica
from swift.container.schema import create_tables as create_container_tables
from swift.db import metadata as meta
from swift.db import stat
from swift.db.broker import Engine
from swift.db.connection import connect
from swift.db.files import DatabasePath
from swift.db.syncpoints import all_syncs, get_sync, merge_syncs, set_sync
from swift.dbsync.protocol import RemoteState

BATCH = 2
PLACE = DatabasePath("nowhere", "databases", "1", "0" * 32)


def time_text(tick):
    return Timestamp(1_700_000_000 + tick).internal


class Node:
    """One replica; everything is done through the methods that replication uses."""

    def __init__(self, number):
        self.number = number
        self.connection = connect(":memory:", create=True)
        self.replica = self.make(f"db-{number}")

    def __repr__(self):
        return f"<Node {self.number}>"

    def close(self):
        self.connection.close()

    def info(self):
        return self.replica.info(self.connection)


class ContainerNode(Node):
    def make(self, own_id):
        create_container_tables(self.connection)
        self.connection.execute(
            "INSERT INTO container_info (account, container, created_at, id) VALUES ('a', 'c', ?, ?)",
            (time_text(self.number), own_id),
        )
        self.connection.execute("INSERT INTO policy_stat (storage_policy_index) VALUES (0)")
        return ContainerReplica(ContainerBroker(PLACE, Engine(), "a", "c"))

    def state(self):
        """Everything that replicas must agree on."""
        ask = self.connection.execute
        rows = ask(
            "SELECT name, created_at, size, content_type, etag, deleted, storage_policy_index FROM object "
            "ORDER BY name, storage_policy_index"
        ).fetchall()
        facts = ask(
            "SELECT created_at, put_timestamp, delete_timestamp, hash, storage_policy_index "
            "FROM container_info"
        ).fetchone()
        counts = ask(
            "SELECT storage_policy_index, object_count, bytes_used FROM policy_stat WHERE object_count "
            "ORDER BY storage_policy_index"
        ).fetchall()
        metadata = meta.parse(ask("SELECT metadata FROM container_info").fetchone()[0])
        ranges = [
            {k: v for k, v in r.items() if k != "reported"} for r in self.replica.ranges(self.connection)
        ]
        return rows, facts, counts, sorted(metadata.items()), ranges


class AccountNode(Node):
    def make(self, own_id):
        create_account_tables(self.connection)
        self.connection.execute(
            "INSERT INTO account_stat (account, created_at, id, container_count) VALUES ('a', ?, ?, 0)",
            (time_text(self.number), own_id),
        )
        return account_replica(AccountBroker(PLACE, Engine(), "a"))

    def state(self):
        ask = self.connection.execute
        rows = ask(
            "SELECT name, put_timestamp, delete_timestamp, object_count, bytes_used, deleted, "
            "storage_policy_index FROM container ORDER BY name"
        ).fetchall()
        facts = ask(
            "SELECT created_at, put_timestamp, delete_timestamp, hash, container_count, object_count, "
            "bytes_used FROM account_stat"
        ).fetchone()
        metadata = meta.parse(ask("SELECT metadata FROM account_stat").fetchone()[0])
        return rows, facts, sorted(metadata.items())


class Lost(Exception):
    """A message or its answer did not arrive."""


class Network:
    """Delivers messages as ``rng`` and ``trouble`` (a probability) will."""

    def __init__(self, rng, trouble):
        self.rng = rng
        self.trouble = trouble
        self.late = []

    def deliver(self, receive, *args):
        """Call the receiver, never, once or twice, now or also later; raises ``Lost``."""
        if self.rng.random() < self.trouble:
            if self.rng.random() < 0.5:
                raise Lost
            receive(*args)
            if self.rng.random() < 0.5:
                raise Lost
            if self.rng.random() < 0.5:
                receive(*args)
            else:
                self.late.append((receive, args))
        return receive(*args)

    def deliver_late(self):
        late, self.late = self.late, []
        self.rng.shuffle(late)
        for receive, args in late:
            receive(*args)


def exchange(network, sender, receiver, now):
    """What ``dbsync.session`` does with ``dbsync.receiver``, step by step; whether it came to its end."""
    ours, mine = sender.replica, sender.connection
    theirs, other = receiver.replica, receiver.connection
    info = ours.info(mine)

    def sync(arguments):
        remote = RemoteState.of_arguments(arguments)
        if theirs.lacks(other, remote):
            theirs.adopt(other, remote, now)
        answer = theirs.info(other)
        answer["point"] = get_sync(other, remote.id, incoming=True)
        if answer["hash"] == remote.hash and answer["point"] < remote.max_row:
            set_sync(other, remote.id, remote.max_row, incoming=True)
            answer["point"] = remote.max_row
        return answer

    try:
        remote = RemoteState.of_mapping(network.deliver(sync, ours.sync_arguments(info, many_policies=True)))
        if ours.lacks(mine, remote):
            ours.adopt(mine, remote, now)
        ours.merge_ranges(mine, network.deliver(theirs.ranges, other))
        network.deliver(theirs.merge_ranges, other, ours.ranges(mine))
        point = max(remote.point, get_sync(mine, remote.id, incoming=False))
        if point >= info["max_row"] or remote.hash == info["hash"]:
            return True
        while items := ours.rows.items_since(mine, point, BATCH):
            network.deliver(theirs.merge_items, other, items, info["id"])
            point = items[-1]["ROWID"]
        syncs = all_syncs(mine, incoming=True)
        network.deliver(lambda: merge_syncs(other, syncs, incoming=True))
        set_sync(mine, remote.id, point, incoming=False)
    except Lost:
        return False
    return True


# --- what happens to replicas -----------------------------------------------------------------------


def _range(rng, tick, number):
    """A version of a shard range; what it says is determined by its times."""
    times = sorted(rng.sample(range(tick), 3))
    lower, upper = ("", "m") if number == 0 else ("m", "")
    return {
        "name": f".shards_a/c-{number}",
        "timestamp": time_text(times[0]),
        "lower": lower,
        "upper": upper,
        "deleted": times[0] % 5 == 0,
        "meta_timestamp": time_text(times[1]),
        "object_count": times[1],
        "bytes_used": 2 * times[1],
        "state_timestamp": time_text(times[2]),
        "state": (20, 30, 40)[times[2] % 3],
        "reported": 0,
    }


def _object_row(rng, tick, posted_before):
    """A report of a PUT, a DELETE or a POST; contents are determined by times, as in a healthy cluster."""
    name = rng.choice("pqr")
    policy_index = rng.choice((0, 0, 1))
    if posted_before and rng.random() < 0.4:
        data, name, policy_index = rng.choice(posted_before)
        row = _content(name, data, policy_index)
        row["content_type"] = f"type/{tick};swift_bytes={data}" if data % 2 else f"type/{tick}"
        row["ctype_timestamp"] = time_text(tick)
        if rng.random() < 0.5:
            row["meta_timestamp"] = time_text(tick)
        return row
    posted_before.append((tick, name, policy_index))
    return _content(name, tick, policy_index)


def _content(name, data, policy_index):
    if data % 4 == 0:
        values = (0, "application/deleted", "noetag", 1)
    else:
        values = (data, f"type/{data};swift_bytes={data}" if data % 2 else f"type/{data}", f"e{data}", 0)
    return {
        "name": name,
        "created_at": time_text(data),
        **dict(zip(("size", "content_type", "etag", "deleted"), values, strict=True)),
        "storage_policy_index": policy_index,
        "ROWID": 0,
    }


def _facts(rng, node, tick):
    connection, table = node.connection, node.replica.stat_table
    time = Timestamp(1_700_000_000 + tick)
    chance = rng.random()
    if chance < 0.3:
        stat.touch_put(connection, table, time)
    elif chance < 0.5:
        stat.mark_deleted(connection, table, time)
    elif chance < 0.7 and table == "container_info":
        set_policy(connection, rng.choice((0, 1)), time)
        stat.touch_status(connection, table, time)
    else:
        new = {f"X-Meta-{rng.choice('AB')}": (rng.choice(("", "v", "w")) + str(tick), time.internal)}
        stat.update_metadata(connection, table, lambda have: meta.merge(have, new))


def container_event(rng, nodes, tick, memory):
    """Something that some of the nodes hear of."""
    heard = rng.sample(nodes, rng.randint(1, len(nodes)))
    chance = rng.random()
    if chance < 0.7:
        row = _object_row(rng, tick, memory)
        for node in heard:
            node.replica.merge_items(node.connection, [row], None)
    elif chance < 0.85:
        version = _range(rng, tick + 3, rng.randint(0, 1))
        for node in heard:
            node.replica.merge_ranges(node.connection, [version])
    else:
        for node in heard[:1]:
            _facts(rng, node, tick)


def account_event(rng, nodes, tick, memory):
    heard = rng.sample(nodes, rng.randint(1, len(nodes)))
    if rng.random() < 0.8:
        put, delete = rng.choice(((time_text(tick), "0"), (time_text(tick // 2), time_text(tick))))
        count = 0 if delete != "0" else tick % 7
        row = {
            "name": rng.choice("pqr"),
            "put_timestamp": put,
            "delete_timestamp": delete,
            "object_count": count,
            "bytes_used": 3 * count,
            "deleted": 0,
            "storage_policy_index": 0,
        }
        for node in heard:
            node.replica.merge_items(node.connection, [row], None)
    else:
        _facts(rng, heard[0], tick)
