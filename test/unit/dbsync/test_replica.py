"""A database as replication sees it: it learns what is newer, forgets nothing; a copy gets its own name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from swift.account.broker import AccountBroker
from swift.account.replication import replica_of
from swift.base.timestamp import Timestamp
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.db.syncpoints import get_sync


def at(seconds):
    return Timestamp(seconds).internal


@pytest.fixture
def replica(tmp_path):
    (tmp_path / "sda").mkdir()
    broker = AccountBroker(DatabasePath(str(tmp_path / "sda"), "accounts", "1", "ab" * 16), Engine(), "a")
    broker.create(Timestamp(100), created_at=Timestamp(100))
    broker.update_metadata({"X-Account-Meta-A": ("old", at(100))}, lambda _metadata: None)
    return replica_of(broker)


def state(replica):
    return replica.broker.read(replica.state_of)


def lacks(replica, remote):
    return replica.broker.read(lambda connection: replica.lacks(connection, remote))


def adopt(replica, remote):
    replica.broker.write(lambda connection: replica.adopt(connection, remote, Timestamp(900)))


def metadata(replica):
    return {name: value for name, (value, _time) in replica.broker.info().metadata.items()}


def test_nothing_is_lacked_of_what_is_the_same(replica):
    assert not lacks(replica, state(replica))


@pytest.mark.parametrize(
    "change",
    [
        {"put_timestamp": at(200)},
        {"delete_timestamp": at(200)},
        {"created_at": at(50)},
        {"metadata": '{"X-Account-Meta-A": ["new", "' + at(200) + '"]}'},
        {"metadata": '{"X-Account-Meta-B": ["more", "' + at(50) + '"]}'},
    ],
)
def test_what_is_newer_is_taken_over_once(replica, change):
    remote = replace(state(replica), **change)
    assert lacks(replica, remote)
    adopt(replica, remote)
    assert not lacks(replica, remote)


@pytest.mark.parametrize(
    "change",
    [
        {"put_timestamp": at(50)},
        {"created_at": at(200)},
        {"metadata": '{"X-Account-Meta-A": ["older", "' + at(50) + '"]}'},
        {"metadata": ""},
    ],
)
def test_what_is_older_changes_nothing(replica, change):
    before = state(replica)
    remote = replace(before, **change)
    assert not lacks(replica, remote)
    adopt(replica, remote)
    assert state(replica) == before and metadata(replica)["X-Account-Meta-A"] == "old"


def test_a_copy_of_a_database_has_a_name_of_its_own_and_all_rows_of_both(replica):
    def renew(connection):
        old = connection.execute("SELECT id FROM account_stat").fetchone()[0]
        replica.renew_identity(connection, "sender-id", "sdb")
        new = connection.execute("SELECT id FROM account_stat").fetchone()[0]
        return old, new, [get_sync(connection, name, incoming=True) for name in (old, "sender-id", "other")]

    old, new, points = replica.broker.write(renew)
    assert new != old and new.endswith("-sdb")
    assert points[0] == points[1] != points[2] or points == [-1, -1, -1]


def test_it_says_of_whom_it_is_and_what_it_has(replica):
    assert replica.broker.read(replica.names) == ("a",)
    info = replica.broker.read(replica.info)
    assert (info["count"], info["max_row"], info["put_timestamp"]) == (0, -1, at(100))
    arguments = replica.sync_arguments(info, many_policies=True)
    assert arguments[0] == -1 and arguments[4] == at(100)


def test_an_account_has_no_shards(replica):
    assert replica.broker.read(replica.ranges) == []
    assert not replica.broker.read(replica.is_being_split)
    assert not replica.broker.read(replica.holds_unsplit_rows)
