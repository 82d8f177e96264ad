"""Databases of a newer release are read, changed, replicated and split, and lose nothing on the way."""

import json
import sqlite3

import pytest

from swift.account import auditor as account_auditor
from swift.account.replication import replica_of as account_replica
from swift.account.server import AccountServer
from swift.base.hashing import PathHasher
from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.container import auditor as container_auditor
from swift.container import objecttable
from swift.container.broker import ContainerBroker
from swift.container.misplaced import queue_misplaced
from swift.container.objecttable import BULK
from swift.container.replication import ContainerReplica, ReclaimableContainerRows
from swift.container.rows import ObjectRow, merge, row_of_mapping, row_of_pending
from swift.container.server import ContainerServer
from swift.container.sharding.files import begin_epoch
from swift.db import pending
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.dbsync.reclaim import reclaim
from swift.http.request import Request
from swift.platform.devices import Devices
from swift.runtime.backendapp import BackendContext
from test.support import databases

HASHER = PathHasher(b"", b"newer")
UPLOAD = "x-backend-database-upload"
STAMPS = {n: f"{n:010d}.00000" for n in range(20)}
#: Name to (deleted, systags, shape) of the rows that the fixture has.
ALL = {
    "plain": (0, None, 0),
    "tagged": (0, "upload=1", 4),
    "gone": (1, None, 0),
    "hidden": (2, "part=1", 0),
    "waiting": (3, None, 0),
}
TRIGGERS = [databases.COUNTING_BY_DIFFERENCE, databases.COUNTING_ITS_OWN]


class Node:
    """A container or account server with one device."""

    def __init__(self, root, name, make_server=ContainerServer):
        self.kind, self.names = ("containers", ("a", "c"))
        if make_server is AccountServer:
            self.kind, self.names = ("accounts", ("a",))
        (root / name).mkdir()
        (root / name / "sda").mkdir()
        self.root = root / name
        devices = Devices(str(self.root), mount_check=False)
        self.server = make_server(BackendContext(devices=devices, hasher=HASHER))
        self.hash = HASHER.hexdigest(*self.names)
        self.place = DatabasePath(str(self.root / "sda"), self.kind, "1", self.hash)
        self.path = "/sda/1/" + "/".join(self.names)

    def fill(self, make, **options):
        path = self.root / self.place.file()
        path.parent.mkdir(parents=True)
        make(path, **options)
        return self

    def create(self):
        assert self("PUT", self.path, x_timestamp=STAMPS[1]).status == 201
        return self

    def __call__(self, method, path, body=b"", **headers):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        path, _, query = path.partition("?")
        return self.server.handle(Request(method, path, sent, body, query=query))

    def say(self, *message):
        return self("REPLICATE", f"/sda/1/{self.hash}", json.dumps(message).encode())

    def bring(self, other, operation):
        """Send the whole database of another node."""
        (file,) = other.root.rglob(f"{self.hash}.db")
        sent = self.server.handle(
            Request("REPLICATE", f"/sda/1/{self.hash}", {UPLOAD: "other"}, file.read_bytes())
        )
        assert sent.status == 204
        assert self.say(operation, "other", f"{self.hash}.db").status == 204

    def ask(self, query):
        self("HEAD", self.path)
        (file,) = self.root.rglob(f"{self.hash}.db")
        connection = sqlite3.connect(file)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def rows(self):
        return {name: rest for name, *rest in self.ask("SELECT name, deleted, systags, shape FROM object")}

    @property
    def broker(self):
        return self.server.brokers.get(self.place)

    @property
    def replica(self):
        return ContainerReplica(self.broker)

    def message(self):
        return json.loads(self.broker.read(lambda c: self.replica.rows.message_since(c, -1, 100))[0])


def as_lists(rows):
    return {name: list(values) for name, values in rows.items()}


@pytest.fixture(params=TRIGGERS, ids=["triggers of today", "triggers of its own"])
def node(request, tmp_path):
    return Node(tmp_path, "newer").fill(databases.make_newer_container, triggers=request.param)


def put(node, name, at, **headers):
    row = {"x_size": "3", "x_etag": "f", "x_content_type": "t/p", "x_timestamp": STAMPS[at]}
    return node("PUT", f"{node.path}/{name}", **{**row, **headers})


def test_a_listing_shows_only_live_rows(node):
    assert node("GET", node.path).read_body() == b"plain\ntagged\n"
    assert node("GET", f"{node.path}?delimiter=/").read_body() == b"plain\ntagged\n"


def test_a_change_of_another_row_leaves_rows_columns_and_tables_alone(node):
    assert put(node, "new", 9).status == 201
    assert node("DELETE", f"{node.path}/plain", x_timestamp=STAMPS[9]).status == 204
    assert node.rows() == as_lists({**ALL, "new": (0, None, 0), "plain": (1, None, 0)})
    assert len(node.ask("SELECT * FROM action")) == 2
    assert node.ask("SELECT mood FROM container_info") == [("fine",)]


def test_newer_metadata_keeps_what_belongs_to_the_data_and_newer_data_replaces_it(node):
    times = {"x_content_type_timestamp": STAMPS[5], "x_meta_timestamp": STAMPS[6]}
    assert put(node, "tagged", 2, **times).status == 201
    assert node.rows()["tagged"] == [0, "upload=1", 4]
    assert put(node, "tagged", 9).status == 201
    assert node.rows()["tagged"] == [0, None, 0]


def test_an_unknown_row_is_one_row_until_newer_data_replaces_it(node):
    assert put(node, "hidden", 1).status == 201
    assert node.rows()["hidden"] == [2, "part=1", 0]
    assert put(node, "hidden", 9).status == 201
    assert node.ask("SELECT deleted FROM object WHERE name = 'hidden'") == [(0,)]
    assert node("GET", node.path).read_body() == b"hidden\nplain\ntagged\n"


def counts(node):
    head = node("HEAD", node.path)
    return head.headers["x-container-object-count"], head.headers["x-container-bytes-used"]


def test_unknown_rows_count_as_no_objects_and_no_bytes_once_one_of_them_is_written(node):
    item = {"name": "more", "created_at": STAMPS[3], "size": 100, "deleted": 2, "etag": "e", "ROWID": 9}
    assert node.say("merge_items", [{**item, "content_type": "t/p"}], "remote").status == 202
    assert counts(node) == ("2", "12")
    assert node("DELETE", f"{node.path}/more", x_timestamp=STAMPS[9]).status == 204
    assert counts(node) == ("2", "12")
    assert node.broker.read(container_auditor.totals) == []


@pytest.mark.parametrize("count", [1, BULK + 1])
def test_a_node_of_this_release_counts_them_the_same(tmp_path, count):
    node = Node(tmp_path, "ours").create()
    items = [
        {"ROWID": n, "name": f"{n}", "created_at": STAMPS[3], "size": 7, "deleted": n % 3 * 2, "etag": ""}
        for n in range(count)
    ]
    assert node.say("merge_items", [{**item, "content_type": "t/p"} for item in items], "r").status == 202
    live = sum(not item["deleted"] for item in items)
    assert counts(node) == (str(live), str(7 * live))
    assert node.broker.read(container_auditor.totals) == []


def test_own_triggers_of_a_newer_release_see_many_rows_too(tmp_path):
    node = Node(tmp_path, "newer").fill(databases.make_newer_container, triggers=databases.COUNTING_ITS_OWN)
    rows = [ObjectRow(f"{n}", STAMPS[3], 1, "t/p", "e", unknown=(("systags", "x"),)) for n in range(BULK)]
    put(node, "new", 9)
    node.broker.merge_rows(rows)
    assert node.ask("SELECT tagged FROM policy_stat") == [(2 + BULK,)]


def test_rows_travel_to_a_node_of_this_release_and_back(tmp_path, node):
    assert put(node, "new", 9).status == 201
    node("HEAD", node.path)
    ours, back = Node(tmp_path, "ours").create(), Node(tmp_path, "back").create()
    assert ours.say("merge_items", node.message(), "newer").status == 202
    assert back.say("merge_items", ours.message(), "ours").status == 202
    for each in (ours, back):
        assert each.rows() == as_lists({**ALL, "new": (0, None, 0)})
        assert each.ask("SELECT hash FROM container_info") == node.ask("SELECT hash FROM container_info")
        assert each("GET", each.path).read_body() == b"new\nplain\ntagged\n"


def test_an_update_keeps_unknown_columns(tmp_path):
    node = Node(tmp_path, "ours").create()
    row = {"name": "o", "created_at": STAMPS[3], "size": 1, "content_type": "t", "etag": "e", "systags": "a"}
    body = json.dumps([row]).encode()
    assert node("UPDATE", node.path, body, x_timestamp=STAMPS[4]).status == 202
    assert node.ask("SELECT systags FROM object") == [("a",)]


@pytest.mark.parametrize(
    "extra", [{"sys tags": "x"}, {"systags": ["x"]}, {"systags": {"a": 1}}, {"systags": 1 << 70}]
)
def test_what_no_column_can_hold_is_refused_and_changes_nothing(tmp_path, extra):
    node = Node(tmp_path, "ours").create()
    row = {"ROWID": 1, "name": "o", "created_at": STAMPS[3], "size": 1, "content_type": "t", "etag": "e"}
    assert node.say("merge_items", [{**row, **extra}], "remote").status == 400
    assert node.ask("SELECT * FROM object") == []


def test_names_of_columns_that_sqlite_has_itself_are_no_columns(tmp_path):
    node = Node(tmp_path, "ours").create()
    row = {"ROWID": 1, "name": "o", "created_at": STAMPS[3], "size": 1, "content_type": "t", "etag": "e"}
    assert node.say("merge_items", [{**row, "oid": 4, "Name": "x", "systags": None}], "r").status == 202
    assert "systags" not in [column for _, column, *_ in node.ask("PRAGMA table_info(object)")]


def test_two_reports_of_the_same_data_end_equal_in_either_order():
    base = {"name": "o", "created_at": STAMPS[3], "size": 1, "content_type": "t", "etag": "e"}
    plain, tagged = row_of_mapping(base), row_of_mapping({**base, "systags": "a", "deleted": 2})
    shaped = row_of_mapping({**base, "shape": 1})
    merged = merge(merge(plain, tagged), shaped)
    assert merged.deleted == 2 and dict(merged.unknown) == {"systags": "a", "shape": 1}
    other = merge(merge(shaped, tagged), plain)
    assert (other.deleted, dict(other.unknown)) == (merged.deleted, dict(merged.unknown))
    assert merge(merged, plain) is merged


def test_a_whole_database_is_installed_with_everything_in_it(tmp_path, node):
    ours = Node(tmp_path, "ours")
    ours.bring(node, "complete_rsync")
    assert ours.rows() == as_lists(ALL)
    assert len(ours.ask("SELECT * FROM action")) == 2


def test_a_whole_database_of_this_release_takes_over_what_a_newer_one_had(tmp_path, node):
    theirs = Node(tmp_path, "ours").create()
    put(theirs, "theirs", 4)
    theirs("HEAD", theirs.path)
    put(node, "mine", 4)
    assert node.say("merge_shard_ranges", [], "x").status == 202
    node.bring(theirs, "rsync_then_merge")
    assert node.rows() == as_lists({**{k: (*v[:2], v[2]) for k, v in ALL.items()}, "mine": (0, None, 0)}) | {
        "theirs": [0, None, None]
    }
    assert sorted(node.ask("SELECT name, verb FROM action")) == [
        ("hidden", "purge"),
        ("waiting", "assemble"),
    ]
    assert node.ask("SELECT name FROM sqlite_master WHERE name = 'ix_action_name'")
    assert node.ask("SELECT mood FROM container_info") == [("fine",)]
    assert counts(node) == ("4", "18")


def test_a_newer_whole_database_and_one_with_the_same_tables_become_their_union(tmp_path, node):
    other = Node(tmp_path, "other").fill(databases.make_newer_container)
    (file,) = other.root.rglob("*.db")
    connection = sqlite3.connect(file)
    connection.execute("INSERT INTO action (name, created_at, verb) VALUES ('x', '1', 'y')")
    connection.commit()
    connection.close()
    node("HEAD", node.path)
    node.bring(other, "rsync_then_merge")
    assert sorted(node.ask("SELECT name FROM action")) == [("hidden",), ("waiting",), ("x",)]
    assert node.rows() == as_lists(ALL)


def test_pending_entries_with_more_fields_are_merged(node):
    entry = ("late", STAMPS[4], 3, "t/p", "e", 2, 0, None, None, "part=9", 6)
    node("HEAD", node.path)
    with open(node.place.pending, "wb") as file:
        file.write(pending.encode(entry))
        file.write(pending.encode(("plain2", STAMPS[4], 3, "t/p", "e", 0)))
    rows = node.rows()
    assert rows["late"] == [2, "part=9", 6] and rows["plain2"] == [0, None, 0]


def test_the_first_pending_field_more_is_systags_where_the_table_does_not_say(tmp_path):
    node = Node(tmp_path, "ours").create()
    with open(node.place.pending, "wb") as file:
        file.write(pending.encode(("late", STAMPS[4], 3, "t/p", "e", 0, 0, None, None, "part=9")))
    assert node.ask("SELECT name, systags FROM object") == [("late", "part=9")]


def test_rows_of_this_release_wait_in_entries_that_every_release_reads(tmp_path):
    node = Node(tmp_path, "ours").create()
    put(node, "o", 3)
    with open(node.place.pending, "rb") as file:
        (entry,) = pending.entries(file.read(), print)
    assert len(entry) == 9 and row_of_pending(entry).name == "o"


def test_only_plain_tombstones_are_reclaimed(node):
    put(node, "new", 9)
    reclaim(node.broker, ReclaimableContainerRows(node.broker), Timestamp(10_000_000), 1.0)
    assert node.rows() == as_lists({n: v for n, v in {**ALL, "new": (0, None, 0)}.items() if n != "gone"})


def test_a_deleted_container_stays_while_it_has_rows_of_a_newer_release(node):
    for name in ("plain", "tagged"):
        node("DELETE", f"{node.path}/{name}", x_timestamp=STAMPS[9])
    broker = node.broker

    def delete(connection):
        connection.execute(
            "UPDATE container_info SET delete_timestamp = :at, reported_delete_timestamp = :at, "
            "reported_put_timestamp = put_timestamp",
            {"at": STAMPS[12]},
        )
        connection.execute("UPDATE policy_stat SET object_count = 0, bytes_used = 0")

    broker.write(delete)
    old, later = ReclaimableContainerRows(broker), Timestamp(10_000_000)
    assert not broker.read(lambda c: old.is_reclaimable(c, later))
    broker.write(lambda c: c.execute("DELETE FROM object WHERE deleted > 1").rowcount)
    broker.write(lambda c: c.execute("UPDATE policy_stat SET object_count = 0, bytes_used = 0").rowcount)
    assert broker.read(lambda c: old.is_reclaimable(c, later))


def shard_at(root):
    (root / "shards").mkdir()
    place = DatabasePath(str(root / "shards"), "containers", "9", "1" * 32)
    shard = ContainerBroker(place, Engine(), ".shards_a", "c-1")
    shard.create(Timestamp(5), 0, created_at=Timestamp(5))
    return shard


def test_rows_that_move_into_a_shard_keep_everything(tmp_path, node):
    node("HEAD", node.path)
    shard = shard_at(tmp_path)
    found = node.broker.read(lambda c: objecttable.rows_inside(c, "", "", 0, 100))
    outside = node.broker.read(lambda c: objecttable.rows_outside(c, "h", "z", 0, 100))
    assert [row.name for _, row in outside] == ["gone"]
    shard.merge_rows([row for _, row in found])
    query = "SELECT name, deleted, systags, shape FROM object"
    moved = shard.read(lambda c: {name: rest for name, *rest in c.execute(query)})
    assert moved == as_lists(ALL)
    assert node.broker.read(lambda c: objecttable.counts_inside(c, "", "")) == (2, 12, 3)
    assert shard.info().object_count == 2 and shard.info().bytes_used == 12
    shard.close()


def test_rows_that_move_into_a_root_carry_everything_in_the_message():
    row = ObjectRow("o", STAMPS[3], 1, "t", "e", 2, unknown=(("systags", "a"),))
    assert row_of_mapping(row.as_update()) == row


def test_the_second_file_of_a_split_container_has_all_tables_and_columns(node):
    node("HEAD", node.path)
    broker = node.broker
    broker.merge_shard_ranges(
        [ShardRange("a/c", Timestamp(90).normal, state=State.SHARDING, epoch=Timestamp(100).normal)]
    )
    assert begin_epoch(broker, Timestamp(100).normal)
    assert len(broker.databases) == 2

    def ask(query):
        return broker.read(lambda c: c.execute(query).fetchall(), database=broker.newest)

    assert sorted(ask("SELECT name FROM action")) == [("hidden",), ("waiting",)]
    assert ask("SELECT mood FROM container_info") == [("fine",)]
    assert ask("SELECT systags, shape FROM object") == []
    broker.merge_rows([ObjectRow("x", STAMPS[9], 1, "t", "e", unknown=(("systags", "a"),))])
    assert ask("SELECT name, systags, shape FROM object") == [("x", "a", 0)]
    assert ask("SELECT object_count FROM policy_stat") == [(1,)]


def test_a_changed_shard_range_keeps_the_columns_of_a_newer_release(node):
    node("HEAD", node.path)
    broker = node.broker
    broker.write(
        lambda c: (
            c.execute(
                "INSERT INTO shard_range (name, timestamp, lower, upper, meta_timestamp, state, "
                "state_timestamp, weight) VALUES ('.shards_a/c-1', :at, '', 'm', :at, 20, :at, 7)",
                {"at": STAMPS[3]},
            ).rowcount
        )
    )
    broker.merge_shard_ranges([ShardRange(".shards_a/c-1", STAMPS[9], "", "n", state=State.ACTIVE)])
    assert node.ask("SELECT upper, weight FROM shard_range") == [("n", 7)]


def test_a_strong_listing_sees_unknown_rows_as_gone(node):
    headers = {"x_backend_record_type": "replica-rows"}
    shown = json.loads(node("GET", f"{node.path}?format=json", **headers).read_body())["rows"]
    gone = {row["name"] for row in shown if row.get("deleted")}
    assert gone == {"gone", "hidden", "waiting"}


def test_unknown_rows_of_another_policy_are_not_queued(tmp_path, node):
    class View:
        def partition_of(self, digest):
            return 1

    node("HEAD", node.path)
    node.broker.write(lambda c: c.execute("UPDATE container_info SET storage_policy_index = 1").rowcount)
    assert queue_misplaced(node.replica, View(), HASHER, [True]) == 3


def test_accounts_keep_columns_tables_and_states_too(tmp_path):
    node = Node(tmp_path, "newer", AccountServer).fill(databases.make_newer_account)
    assert node("GET", node.path).read_body() == b"live\n"
    row = {"x_object_count": "4", "x_bytes_used": "40", "x_put_timestamp": STAMPS[9]}
    for name in ("live", "new"):
        assert node("PUT", f"{node.path}/{name}", x_delete_timestamp="0", **row).status in (201, 202)
    stale = {**row, "x_put_timestamp": STAMPS[1], "x_object_count": "3", "x_bytes_used": "0"}
    assert node("PUT", f"{node.path}/hidden", x_delete_timestamp="0", **stale).status in (201, 202)
    expected = [("gone", 1, None), ("hidden", 2, "c=d"), ("live", 0, "a=b"), ("new", 0, None)]
    assert sorted(node.ask("SELECT name, deleted, systags FROM container")) == expected
    assert node("HEAD", node.path).headers["x-account-container-count"] == "2"
    assert node.broker.read(account_auditor.totals) == []

    ours = Node(tmp_path, "ours", AccountServer).create()
    replica = account_replica(node.broker)
    items = json.loads(node.broker.read(lambda c: replica.rows.message_since(c, -1, 100))[0])
    assert ours.say("merge_items", items, "newer").status == 202
    assert sorted(ours.ask("SELECT name, deleted, systags FROM container")) == expected
    assert ours("HEAD", ours.path).headers["x-account-container-count"] == "2"
    assert ours.broker.read(account_auditor.totals) == []

    fresh = Node(tmp_path, "fresh", AccountServer).create()
    fresh("PUT", f"{fresh.path}/mine", x_delete_timestamp="0", **row)
    fresh("HEAD", fresh.path)
    node.bring(fresh, "rsync_then_merge")
    assert sorted(node.ask("SELECT name, deleted, systags FROM container")) == sorted(
        [*expected, ("mine", 0, None)]
    )
    assert node.ask("SELECT name, verb FROM action") == [("hidden", "purge")]
    assert node.ask("SELECT mood FROM account_stat") == [("fine",)]


def test_old_account_tombstones_go_and_unknown_rows_stay(tmp_path):
    node = Node(tmp_path, "newer", AccountServer).fill(databases.make_newer_account)
    node("HEAD", node.path)
    replica = account_replica(node.broker)
    reclaim(node.broker, replica.old, Timestamp(10_000_000), 1.0)
    assert sorted(node.ask("SELECT name FROM container")) == [("hidden",), ("live",)]
