"""Rows of another policy are queued for the reconciler, once and under the names that it expects."""

from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.container.broker import ContainerBroker
from swift.container.misplaced import entry, queue_misplaced
from swift.container.replication import ContainerReplica
from swift.container.rows import ObjectRow
from swift.db.broker import Engine
from swift.db.files import DatabasePath

HASHER = PathHasher(b"", b"s")


class View:
    def partition_of(self, digest):
        return digest[0] >> 4


def container(tmp_path, **engine):
    (tmp_path / "sda").mkdir()
    digest = HASHER.digest("a", "c")
    place = DatabasePath(str(tmp_path / "sda"), "containers", str(digest[0] >> 4), digest.hex())
    broker = ContainerBroker(place, Engine(**engine), "a", "c")
    broker.create(Timestamp(5), 0, created_at=Timestamp(5))
    return ContainerReplica(broker)


def row(name, time, policy_index, deleted=0):
    return ObjectRow(name, Timestamp(time).internal, 3, "t/p", "e", deleted, policy_index)


def damage(connection):
    connection.execute("DROP TRIGGER object_update")
    connection.execute("UPDATE object SET created_at = 'never' WHERE name = 'bad'")


def queued(tmp_path):
    found = {}
    for path in (tmp_path / "sda").glob("containers/*/*/*/*.db"):
        broker = ContainerBroker(DatabasePath.of_file(str(path)), Engine(), "", "")
        broker.refresh()
        account, name, rows = broker.read(
            lambda c: (
                *c.execute("SELECT account, container FROM container_info").fetchone(),
                c.execute(
                    "SELECT name, created_at, size, content_type, etag FROM object ORDER BY name"
                ).fetchall(),
            )
        )
        broker.close()
        if account == ".misplaced_objects":
            found[name] = rows
    return found


def test_entries_have_the_names_of_the_reconciler():
    misplaced = ObjectRow("x", "1402436408.91203", 3, "t/p", "e", 0, 1)
    hour, item = entry(misplaced, "AUTH_test/c")
    assert (hour, item.name, item.content_type) == ("1402434000", "1:/AUTH_test/c/x", "application/x-put")
    assert (item.size, item.etag, item.created_at) == (0, "1402436408.91203", "1402436408.91203")
    assert entry(misplaced._replace(deleted=1), "a/c")[1].content_type == "application/x-delete"


def test_what_is_in_the_right_policy_is_left_alone(tmp_path):
    replica = container(tmp_path)
    replica.broker.put_rows([row("o", 9, 0)])
    assert queue_misplaced(replica, View(), HASHER, [True, True]) == 0
    assert queued(tmp_path) == {}


def test_the_queue_is_left_again_only_when_a_majority_has_the_rows(tmp_path):
    replica = container(tmp_path)
    replica.broker.put_rows([row("o", 9, 0), row("p", 4000, 1), row("q", 4001, 1, deleted=1)])
    expected = {
        "3600": [
            ("1:/a/c/p", "0000004000.00000", 0, "application/x-put", "0000004000.00000"),
            ("1:/a/c/q", "0000004001.00000", 0, "application/x-delete", "0000004001.00000"),
        ]
    }
    assert queue_misplaced(replica, View(), HASHER, [True, False]) == 2
    assert queued(tmp_path) == expected
    assert queue_misplaced(replica, View(), HASHER, [True, True]) == 2
    assert queued(tmp_path) == expected
    assert queue_misplaced(replica, View(), HASHER, [True, True]) == 0
    replica.broker.put_rows([row("r", 8000, 1)])
    assert queue_misplaced(replica, View(), HASHER, [True, True]) == 1
    assert set(queued(tmp_path)) == {"3600", "7200"}


def test_a_row_that_cannot_be_read_is_told_and_holds_no_other_back(tmp_path):
    told = []
    replica = container(tmp_path, warn=told.append)
    replica.broker.put_rows([row("o", 4000, 1), row("bad", 4001, 1), row("p", 4002, 1)])
    replica.broker.write(damage)
    assert queue_misplaced(replica, View(), HASHER, [True, True]) == 2
    assert [name for name, *_ in queued(tmp_path)["3600"]] == ["1:/a/c/o", "1:/a/c/p"]
    assert told == ["row 2 of a/c cannot be queued: not a timestamp: 'never'"]
    assert queue_misplaced(replica, View(), HASHER, [True, True]) == 1, "from there on it is tried again"


def test_entries_of_shards_name_their_root(tmp_path):
    replica = container(tmp_path)
    replica.broker.update_metadata({"X-Container-Sysmeta-Shard-Quoted-Root": ("a/r%20t", "0000000006.00000")})
    replica.broker.put_rows([row("p", 4000, 1)])
    queue_misplaced(replica, View(), HASHER, [True])
    assert [item[0] for item in queued(tmp_path)["3600"]] == ["1:/a/r t/p"]
