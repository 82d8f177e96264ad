"""swift-account-info: what the database of an account says of its containers, its policies and its end."""

import json

import pytest

from swift.account.broker import AccountBroker
from swift.account.rows import ContainerRow
from swift.base.timestamp import Timestamp
from swift.cli.account_info import main
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from test.support.databases import HASH
from test.support.peer import SWIFT_CONF


@pytest.fixture
def broker(tmp_path):
    (tmp_path / "sda").mkdir()
    made = AccountBroker(DatabasePath(str(tmp_path / "sda"), "accounts", "7", HASH), Engine(), "a")
    made.create(Timestamp(5), created_at=Timestamp(5))
    yield made
    made.close()


@pytest.fixture
def told(broker, tmp_path, capsys):
    (tmp_path / "swift.conf").write_text(SWIFT_CONF)

    def ask():
        assert main(["-d", str(tmp_path), "--format", "json", broker.place.file()]) == 0
        return json.loads(capsys.readouterr().out)

    return ask


def row(name, policy_index):
    return ContainerRow(name, Timestamp(6).internal, "0", 2, 10, storage_policy_index=policy_index)


def test_containers_are_counted_by_policy_as_soon_as_there_are_several(broker, told):
    broker.put_rows([row("c0", 0)])
    assert told()["container_count"] == "1"
    assert "gold_container_count" not in told()
    broker.put_rows([row("c1", 1)])
    found = told()
    counted = [found[f"{name}container_count"] for name in ("", "gold_", "silver_")]
    assert counted == ["2", "1", "1"]
    assert (found["object_count"], found["bytes_used"]) == ("4", "20")


def test_a_policy_that_is_not_configured_is_called_by_its_index(broker, told):
    broker.put_rows([row("c0", 0)])
    broker.put_rows([row("c9", 9)])
    assert told()["9_container_count"] == "1"


def test_a_deleted_account_says_so(broker, told):
    assert told()["deleted"] is False
    broker.delete(Timestamp(7))
    found = told()
    assert found["deleted"] is True
    assert found["delete_timestamp"].endswith(f"({Timestamp(7).internal})")
