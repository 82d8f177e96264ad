"""Databases as older versions left them, with two live rows each; for account ``a`` and container ``a/c``."""

import sqlite3

from swift.account.schema import create_tables as create_account
from swift.container.schema import create_tables as create_container
from swift.db.connection import chexor
from test.unit.account.test_schema import AGES as ACCOUNT_AGES
from test.unit.container.test_schema import BEFORE_POLICIES, DROPS

#: Ages that real databases have had.
CONTAINER = {
    "before policies": "",
    **{age: script for age, script in DROPS.items() if "sync" not in age and "reconciler" not in age},
}
ACCOUNT = ACCOUNT_AGES


def make_container(path, age):
    """A container database of that age at ``path``; its directory must exist."""
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
        connection.executescript(CONTAINER[age])
    connection.commit()
    connection.close()


def make_account(path, age):
    """An account database of that age."""
    connection = _connect(path)
    create_account(connection)
    connection.execute(
        "INSERT INTO account_stat (account, created_at, put_timestamp, id, container_count) "
        "VALUES ('a', '0000000001.00000', '0000000001.00000', 'old-id', 0)"
    )
    connection.executescript(ACCOUNT[age])
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
