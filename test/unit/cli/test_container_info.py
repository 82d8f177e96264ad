"""swift-container-info: what the database of a container says of its policy and its shards."""

import json
import os

import pytest

from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.cli.container_info import main
from test.support.databases import make_container
from test.support.peer import SWIFT_CONF


@pytest.fixture
def broker(tmp_path):
    made = make_container(tmp_path)
    yield made
    made.close()


@pytest.fixture
def run(broker, tmp_path, capsys):
    (tmp_path / "swift.conf").write_text(SWIFT_CONF)

    def call(*words):
        assert main(["-d", str(tmp_path), *words, broker.place.file()]) == 0
        return capsys.readouterr().out

    return call


def test_a_container_without_shards_is_a_root_that_is_not_split(run):
    lines = run().splitlines()
    place = lines.index("Sharding Metadata:")
    assert lines[place + 1 : place + 3] == ["  Type: root", "  State: unsharded"]
    assert not any("Shard Ranges" in line for line in lines)


def test_shards_are_counted_by_state_and_shown_when_asked(run, broker):
    ranges = [
        ShardRange(
            ".shards_a/c-1", Timestamp(6).internal, "", "m", object_count=3, bytes_used=9, state=State.ACTIVE
        ),
        ShardRange(
            ".shards_a/c-2", Timestamp(6).internal, "m", "", object_count=4, bytes_used=8, state=State.CREATED
        ),
    ]
    broker.merge_shard_ranges(ranges)
    lines = run().splitlines()
    assert "Shard Ranges (2):" in lines
    assert "       active: 1" in lines
    assert "      created: 1" in lines
    assert not any(".shards_a/c-1" in line for line in lines)
    shown = run("--verbose").splitlines()
    place = shown.index("  Name: .shards_a/c-1")
    assert shown[place + 1] == "    lower: '', upper: 'm'"
    assert shown[place + 2] == "    Object Count: 3, Bytes Used: 9, State: active (40)"


def test_the_policy_is_that_of_the_database_and_not_the_default(run, tmp_path):
    (tmp_path / "swift.conf").write_text(
        "[swift-hash]\nswift_hash_path_suffix = s\n"
        "[storage-policy:1]\nname = one\ndefault = yes\n[storage-policy:0]\nname = zero\n"
    )
    assert json.loads(run("--format", "json"))["storage_policy"] == "zero (0)"


def test_a_deleted_container_says_so(run, broker):
    broker.delete(Timestamp(7))
    assert json.loads(run("--format", "json"))["deleted"] is True


def test_the_file_is_found_by_its_name_before_a_split(run, broker):
    broker.close()
    os.rename(broker.place.file(), broker.place.file("1795000001.00000"))
    assert "Sharding Metadata:" in run()
