"""Account databases of every age open and end with the schema of today."""

import sqlite3

import pytest

from swift.account.broker import AccountBroker, PolicyStat
from swift.account.containertable import TABLE
from swift.account.schema import create_tables
from swift.db.broker import Engine
from swift.db.connection import chexor
from swift.db.files import DatabasePath
from swift.db.listing import ListingQuery
from swift.db.schema import facts_of, max_row

COLUMNS = (
    "ROWID INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, put_timestamp TEXT, delete_timestamp TEXT, "
    "object_count INTEGER, bytes_used INTEGER, deleted INTEGER DEFAULT 0"
)
ROWS = (
    "INSERT INTO container (name, put_timestamp, delete_timestamp, object_count, bytes_used, deleted) VALUES "
    "('c1', '0000000001.00000', '0', 2, 20, 0), ('c2', '0000000001.00000', '0', 3, 30, 0), "
    "('gone', '0000000001.00000', '0000000002.00000', 0, 0, 1);"
)
DROP_POLICIES = "DROP TRIGGER container_insert_ps; DROP TRIGGER container_delete_ps; DROP TABLE policy_stat;"
AGES = {
    "without policies": f"{ROWS}{DROP_POLICIES} ALTER TABLE container DROP COLUMN storage_policy_index",
    "without policy statistics": f"{ROWS}{DROP_POLICIES}",
    "without container counts by policy": (
        f"{ROWS}{DROP_POLICIES} CREATE TABLE policy_stat (storage_policy_index INTEGER PRIMARY KEY, "
        "object_count INTEGER DEFAULT 0, bytes_used INTEGER DEFAULT 0); "
        "INSERT INTO policy_stat VALUES (0, 5, 50)"
    ),
    "without index": f"{ROWS} DROP INDEX ix_container_deleted_name",
    "without metadata": f"{ROWS} ALTER TABLE account_stat DROP COLUMN metadata",
    "without any of these": (
        f"{ROWS}{DROP_POLICIES} DROP INDEX ix_container_deleted_name; "
        "ALTER TABLE container DROP COLUMN storage_policy_index; "
        "ALTER TABLE account_stat DROP COLUMN metadata"
    ),
    "of today": ROWS,
}


@pytest.mark.parametrize("age", AGES)
def test_databases_of_every_age(tmp_path, age):
    (tmp_path / "sda").mkdir()
    place = DatabasePath(str(tmp_path / "sda"), "accounts", "1", "ab" * 16)
    (tmp_path / "sda" / "accounts" / "1" / "bab" / ("ab" * 16)).mkdir(parents=True)
    connection = sqlite3.connect(place.file())
    connection.create_function("chexor", 3, chexor)
    create_tables(connection)
    wanted = facts_of(connection)
    connection.execute(
        "INSERT INTO account_stat (account, created_at, put_timestamp, id, container_count) "
        "VALUES ('a', '1', '0000000001.00000', 'x', 0)"
    )
    connection.executescript(AGES[age])
    connection.commit()
    connection.close()
    broker = AccountBroker(place, Engine(), "a")
    assert broker.refresh()
    facts = broker.read(facts_of)
    assert {name: set(columns) for name, columns in facts.tables.items()} == {
        name: set(columns) for name, columns in wanted.tables.items()
    }
    assert (facts.triggers, facts.indexes) == (wanted.triggers, wanted.indexes)
    info = broker.info()
    assert (info.container_count, info.object_count, info.bytes_used) == (2, 5, 50)
    assert broker.policy_stats() == [PolicyStat(0, 2, 5, 50)]
    assert [row[0] for row in broker.listing(ListingQuery(10))] == ["c1", "c2"]
    assert broker.read(lambda c: max_row(c, "container")) == 3
    changes = broker.read(lambda c: TABLE.items_since(c, 1, 10))
    assert [change["name"] for change in changes] == ["c2", "gone"]
