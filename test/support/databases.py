"""Databases of accounts and containers: new, sharded, of other releases, and on other nodes."""

import json
import shutil
import sqlite3

from swift.account.broker import AccountBroker
from swift.account.schema import create_tables as create_account
from swift.base.timestamp import Timestamp
from swift.cluster.transport import BackendResponse, TransportError
from swift.container.broker import ContainerBroker
from swift.container.schema import create_tables as create_container
from swift.db.broker import Engine
from swift.db.connection import chexor
from swift.db.files import DatabasePath
from test.unit.account.test_schema import AGES as ACCOUNT_AGES
from test.unit.container.test_schema import BEFORE_POLICIES, DROPS

# --- databases --------------------------------------------------------------------------------------

# Looking into the databases of daemons that are at work.


def rows_of(path, select):
    """Return the rows of a query; none if the file was removed or replaced meanwhile."""
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
        try:
            return connection.execute(select).fetchall()
        finally:
            connection.close()
    except sqlite3.OperationalError:
        return []


# --- containers -------------------------------------------------------------------------------------

# A container or an account on a temporary device, as tests of what happens to one database need it.


#: The hash that its directory is named by.
HASH = "0" * 29 + "abc"


def make_container(root, account="a", container="c"):
    """Return the broker of a new container on ``root``/sda; the caller closes it."""
    (root / "sda").mkdir()
    place = DatabasePath(str(root / "sda"), "containers", "7", HASH)
    broker = ContainerBroker(place, Engine(), account, container)
    broker.create(Timestamp(5), 0, created_at=Timestamp(5))
    return broker


def make_account(root, name_hash=HASH):
    """Return the broker of a new account ``a`` on ``root``/sda; the caller closes it."""
    (root / "sda").mkdir(exist_ok=True)
    broker = AccountBroker(DatabasePath(str(root / "sda"), "accounts", "7", name_hash), Engine(), "a")
    broker.create(Timestamp(5), created_at=Timestamp(5))
    return broker


def server_rows(sim, number, container="c"):
    """Return the names in one container replica, requested from its server."""
    ring = sim.context.rings.container.view()
    part = ring.partition_of(sim.hasher.digest("a", container))
    port = next(p for p, (kind, n, _) in sim.transport.apps.items() if (kind, n) == ("container", number))
    path = f"/sdb{number}/{part}/a/{container}"
    response = sim.transport.request_of(port, "GET", path)
    return response.body.decode().split()


# --- ages -------------------------------------------------------------------------------------------

# Databases as older versions left them, with two live rows each; for account ``a`` and container ``a/c``.


#: Ages that real databases have had.
OLD_CONTAINERS = {
    "before policies": "",
    **{age: script for age, script in DROPS.items() if "sync" not in age and "reconciler" not in age},
}
OLD_ACCOUNTS = ACCOUNT_AGES


def make_old_container(path, age):
    """Create a container database of a release age at ``path``; its directory must exist."""
    connection = _connect(path)
    if age == "before policies":
        connection.executescript(BEFORE_POLICIES)
        for table in ("outgoing_sync", "incoming_sync"):
            _add_sync_table(connection, table)
    else:
        create_container(connection)
        connection.execute(
            "INSERT INTO container_info (account, container, created_at, put_timestamp, id) "
            "VALUES ('a', 'c', '0000000001.00000', '0000000001.00000', 'old-id')"
        )
        connection.execute("INSERT INTO policy_stat (storage_policy_index) VALUES (0)")
        connection.executemany(
            "INSERT INTO object (name, created_at, size, content_type, etag) VALUES (?, ?, 5, 't/p', 'e')",
            [("o1", "0000000002.00000"), ("o2", "0000000002.00000")],
        )
        connection.executescript(OLD_CONTAINERS[age])
    connection.commit()
    connection.close()


def make_old_account(path, age):
    """Create an account database of a release age."""
    connection = _connect(path)
    create_account(connection)
    connection.execute(
        "INSERT INTO account_stat (account, created_at, put_timestamp, id, container_count) "
        "VALUES ('a', '0000000001.00000', '0000000001.00000', 'old-id', 0)"
    )
    connection.executescript(OLD_ACCOUNTS[age])
    connection.commit()
    connection.close()


def _connect(path):
    connection = sqlite3.connect(path)
    connection.create_function("chexor", 3, chexor)
    return connection


def _add_sync_table(connection, table):
    connection.execute(
        f"CREATE TABLE {table} (remote_id TEXT UNIQUE, sync_point INTEGER, updated_at TEXT DEFAULT 0)"
    )


# --- newer ------------------------------------------------------------------------------------------

# Databases as a newer release writes them, made by SQL; for account ``a`` and container ``a/c``.
#
# Rows have columns, and databases tables, that this release does not know, and ``deleted`` has values above
# 1.


_INFO = """
    account TEXT, container TEXT, created_at TEXT, put_timestamp TEXT DEFAULT '0',
    delete_timestamp TEXT DEFAULT '0', reported_put_timestamp TEXT DEFAULT '0',
    reported_delete_timestamp TEXT DEFAULT '0', reported_object_count INTEGER DEFAULT 0,
    reported_bytes_used INTEGER DEFAULT 0, hash TEXT DEFAULT '00000000000000000000000000000000', id TEXT,
    status TEXT DEFAULT '', status_changed_at TEXT DEFAULT '0', metadata TEXT DEFAULT '',
    x_container_sync_point1 INTEGER DEFAULT -1, x_container_sync_point2 INTEGER DEFAULT -1,
    storage_policy_index INTEGER DEFAULT 0, reconciler_sync_point INTEGER DEFAULT -1
"""
_SYNC = "(remote_id TEXT UNIQUE, sync_point INTEGER, updated_at TEXT DEFAULT 0)"

#: The triggers of today, which count a row of ``deleted`` 2 as -1 objects.
COUNTING_BY_DIFFERENCE = """
CREATE TRIGGER object_insert_policy_stat AFTER INSERT ON object BEGIN
    UPDATE policy_stat SET object_count = object_count + (1 - new.deleted), bytes_used = bytes_used + new.size
        WHERE storage_policy_index = new.storage_policy_index;
    INSERT INTO policy_stat (storage_policy_index, object_count, bytes_used)
        SELECT new.storage_policy_index, (1 - new.deleted), new.size
        WHERE NOT EXISTS (SELECT 1 FROM policy_stat WHERE storage_policy_index = new.storage_policy_index);
    UPDATE container_info SET hash = chexor(hash, new.name, new.created_at); END;
CREATE TRIGGER object_delete_policy_stat AFTER DELETE ON object BEGIN
    UPDATE policy_stat SET object_count = object_count - (1 - old.deleted), bytes_used = bytes_used - old.size
        WHERE storage_policy_index = old.storage_policy_index;
    UPDATE container_info SET hash = chexor(hash, old.name, old.created_at); END;
"""

#: Triggers that only the newer release understands: they keep a column of its own as well.
COUNTING_ITS_OWN = """
CREATE TRIGGER object_insert_policy_stat AFTER INSERT ON object BEGIN
    UPDATE policy_stat SET object_count = object_count + (new.deleted = 0),
        bytes_used = bytes_used + new.size * (new.deleted = 0), tagged = tagged + (new.systags IS NOT NULL)
        WHERE storage_policy_index = new.storage_policy_index;
    UPDATE container_info SET hash = chexor(hash, new.name, new.created_at); END;
CREATE TRIGGER object_delete_policy_stat AFTER DELETE ON object BEGIN
    UPDATE policy_stat SET object_count = object_count - (old.deleted = 0),
        bytes_used = bytes_used - old.size * (old.deleted = 0), tagged = tagged - (old.systags IS NOT NULL)
        WHERE storage_policy_index = old.storage_policy_index;
    UPDATE container_info SET hash = chexor(hash, old.name, old.created_at); END;
"""

ROWS = """
INSERT INTO object (name, created_at, size, content_type, etag, deleted, systags, shape) VALUES
    ('plain', '0000000002.00000', 5, 't/p', 'e', 0, NULL, 0),
    ('tagged', '0000000002.00000', 7, 't/p', 'e', 0, 'upload=1', 4),
    ('gone', '0000000002.00000', 0, 'application/deleted', 'noetag', 1, NULL, 0),
    ('hidden', '0000000002.00000', 9, 't/p', 'e', 2, 'part=1', 0),
    ('waiting', '0000000002.00000', 11, 't/p', 'e', 3, NULL, 0);
INSERT INTO action (name, created_at, verb) VALUES ('hidden', '0000000002.00000', 'purge'),
    ('waiting', '0000000002.00000', 'assemble');
"""


def make_newer_container(path, *, triggers=COUNTING_BY_DIFFERENCE, rows=ROWS):
    """Create a container database of a newer release at ``path``; its directory must exist."""
    _make(
        path,
        f"""
CREATE TABLE object (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, created_at TEXT, size INTEGER,
    content_type TEXT, etag TEXT, deleted INTEGER DEFAULT 0, storage_policy_index INTEGER DEFAULT 0,
    systags TEXT DEFAULT NULL, shape INTEGER NOT NULL DEFAULT 0);
CREATE INDEX ix_object_deleted_name ON object (deleted, name);
CREATE TRIGGER object_update BEFORE UPDATE ON object
    BEGIN SELECT RAISE(FAIL, 'UPDATE not allowed; DELETE and INSERT'); END;
CREATE TABLE policy_stat (storage_policy_index INTEGER PRIMARY KEY, object_count INTEGER DEFAULT 0,
    bytes_used INTEGER DEFAULT 0, tagged INTEGER DEFAULT 0);
CREATE TABLE container_info ({_INFO}, mood TEXT DEFAULT NULL);
CREATE VIEW container_stat AS SELECT ci.*, ps.object_count, ps.bytes_used FROM container_info ci
    LEFT JOIN policy_stat ps ON ci.storage_policy_index = ps.storage_policy_index;
CREATE TABLE shard_range (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, timestamp TEXT, lower TEXT,
    upper TEXT, object_count INTEGER DEFAULT 0, bytes_used INTEGER DEFAULT 0, meta_timestamp TEXT,
    deleted INTEGER DEFAULT 0, state INTEGER, state_timestamp TEXT, epoch TEXT, reported INTEGER DEFAULT 0,
    tombstones INTEGER DEFAULT -1, weight INTEGER DEFAULT NULL);
CREATE TABLE action (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, created_at TEXT, verb TEXT);
CREATE INDEX ix_action_name ON action (name);
CREATE TABLE incoming_sync {_SYNC};
CREATE TABLE outgoing_sync {_SYNC};
{triggers}
INSERT INTO container_info (account, container, created_at, put_timestamp, id, mood)
    VALUES ('a', 'c', '0000000001.00000', '0000000001.00000', 'newer-id', 'fine');
INSERT INTO policy_stat (storage_policy_index) VALUES (0);
{rows}
""",
    )


def make_newer_account(path):
    """Create an account database at ``path`` with a live, a deleted and an unknown container."""
    _make(
        path,
        f"""
CREATE TABLE container (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, put_timestamp TEXT,
    delete_timestamp TEXT, object_count INTEGER, bytes_used INTEGER, deleted INTEGER DEFAULT 0,
    storage_policy_index INTEGER DEFAULT 0, systags TEXT);
CREATE INDEX ix_container_deleted_name ON container (deleted, name);
CREATE TABLE policy_stat (storage_policy_index INTEGER PRIMARY KEY, container_count INTEGER DEFAULT 0,
    object_count INTEGER DEFAULT 0, bytes_used INTEGER DEFAULT 0);
CREATE TABLE account_stat (account TEXT, created_at TEXT, put_timestamp TEXT DEFAULT '0',
    delete_timestamp TEXT DEFAULT '0', container_count INTEGER, object_count INTEGER DEFAULT 0,
    bytes_used INTEGER DEFAULT 0, hash TEXT DEFAULT '00000000000000000000000000000000', id TEXT,
    status TEXT DEFAULT '', status_changed_at TEXT DEFAULT '0', metadata TEXT DEFAULT '', mood TEXT);
CREATE TABLE action (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, verb TEXT);
CREATE TABLE incoming_sync {_SYNC};
CREATE TABLE outgoing_sync {_SYNC};
CREATE TRIGGER container_insert AFTER INSERT ON container BEGIN
    UPDATE account_stat SET container_count = container_count + (1 - new.deleted),
        object_count = object_count + new.object_count, bytes_used = bytes_used + new.bytes_used,
        hash = chexor(hash, new.name, new.put_timestamp || '-' || new.delete_timestamp || '-' ||
        new.object_count || '-' || new.bytes_used); END;
CREATE TRIGGER container_delete AFTER DELETE ON container BEGIN
    UPDATE account_stat SET container_count = container_count - (1 - old.deleted),
        object_count = object_count - old.object_count, bytes_used = bytes_used - old.bytes_used,
        hash = chexor(hash, old.name, old.put_timestamp || '-' || old.delete_timestamp || '-' ||
        old.object_count || '-' || old.bytes_used); END;
CREATE TRIGGER container_insert_ps AFTER INSERT ON container BEGIN
    INSERT OR IGNORE INTO policy_stat (storage_policy_index) VALUES (new.storage_policy_index);
    UPDATE policy_stat SET container_count = container_count + (1 - new.deleted),
        object_count = object_count + new.object_count, bytes_used = bytes_used + new.bytes_used
        WHERE storage_policy_index = new.storage_policy_index; END;
CREATE TRIGGER container_delete_ps AFTER DELETE ON container BEGIN
    UPDATE policy_stat SET container_count = container_count - (1 - old.deleted),
        object_count = object_count - old.object_count, bytes_used = bytes_used - old.bytes_used
        WHERE storage_policy_index = old.storage_policy_index; END;
INSERT INTO account_stat (account, created_at, put_timestamp, id, container_count, mood)
    VALUES ('a', '0000000001.00000', '0000000001.00000', 'newer-id', 0, 'fine');
INSERT INTO container (name, put_timestamp, delete_timestamp, object_count, bytes_used, deleted, systags)
    VALUES ('live', '0000000002.00000', '0', 1, 10, 0, 'a=b'),
    ('gone', '0000000002.00000', '0000000003.00000', 0, 0, 1, NULL),
    ('hidden', '0000000002.00000', '0', 0, 0, 2, 'c=d');
INSERT INTO action (name, verb) VALUES ('hidden', 'purge');
""",
    )


def _make(path, script):
    connection = sqlite3.connect(path)
    connection.create_function("chexor", 3, chexor)
    connection.executescript(script)
    connection.commit()
    connection.close()


# --- sharded ----------------------------------------------------------------------------------------

# Sharded containers as a sharder leaves them, made without one.


def add_ranges(path, account, container, *, epoch, state):
    """Add the own shard range in ``state`` and two shards that meet at ``m``."""
    connection = sqlite3.connect(path)
    connection.create_function("chexor", 3, chexor)
    own = (f"{account}/{container}", "", "", state, epoch)
    shards = [
        (f".shards_{account}/{container}-{n}", *bounds, 40 if state == 70 else 20, None)
        for n, bounds in enumerate((("", "m"), ("m", "")))
    ]
    for name, lower, upper, range_state, range_epoch in (own, *shards):
        connection.execute(
            "INSERT INTO shard_range (name, timestamp, lower, upper, meta_timestamp, state, state_timestamp, "
            "epoch) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (name, epoch, lower, upper, epoch, range_state, epoch, range_epoch),
        )
    connection.commit()
    connection.close()


def shard(folder, account, container, *, epoch):
    """Turn the database of a hash directory into a sharded one: without rows, named by an epoch."""
    (old,) = folder.glob("*.db")
    new = old.with_name(f"{old.stem}_{epoch}.db")
    shutil.copy(old, new)
    connection = sqlite3.connect(new)
    connection.create_function("chexor", 3, chexor)
    connection.execute("DELETE FROM object")
    connection.commit()
    connection.close()
    add_ranges(new, account, container, epoch=epoch, state=70)
    old.unlink()


# --- replicas ---------------------------------------------------------------------------------------

# Other nodes' copies of databases, as a replicator meets them.


class Replicas:
    """A transport to replicas; ``says`` has a status or an error for each node that is not in sync."""

    def __init__(self):
        self.says = {}
        #: Number and operation of every message.
        self.told = []
        #: Called before each answer.
        self.meanwhile = lambda number, operation: None

    def request(self, request):
        port, method, body = request.node.port, request.method, request.body
        number = port - 6200
        operation = json.loads(body)[0] if method == "REPLICATE" else method
        self.told.append((number, operation))
        self.meanwhile(number, operation)
        said = self.says.get(number)
        if isinstance(said, TransportError):
            raise said
        if said is not None:
            return BackendResponse(said)
        if method != "REPLICATE":
            return BackendResponse(202)
        times = dict.fromkeys(("created_at", "put_timestamp"), Timestamp(5).internal)
        state = {"id": f"db{number}", "hash": "", "delete_timestamp": "0", "metadata": "", **times}
        return BackendResponse(200, body=json.dumps({**state, "max_row": 99, "point": 99}).encode())

    @property
    def asked(self):
        """Return the requested nodes, in order."""
        return [number for number, operation in self.told if operation == "sync"]
