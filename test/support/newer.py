"""Databases as a newer release writes them, made by SQL; for account ``a`` and container ``a/c``.

Rows have columns, and databases tables, that this release does not know, and ``deleted`` has values above 1.
"""

import sqlite3

from swift.db.connection import chexor

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


def make_container(path, *, triggers=COUNTING_BY_DIFFERENCE, rows=ROWS):
    """Make a container database at ``path``; its directory must exist."""
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


def make_account(path):
    """Make an account database at ``path`` with a live, a deleted and an unknown container."""
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
