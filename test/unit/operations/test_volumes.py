"""swift-object-volumes on a node."""

from __future__ import annotations

import errno
import json
import os
import stat

import pytest

from swift.base.errors import ConfigError
from swift.cli.object_volumes import main
from swift.operations.packed import is_engine_directory
from swift.operations.volumes import rebuild_index
from swift.store.api import ABSENT
from swift.store.packed.opening import IndexInUse
from test.contract.test_store import GOLD, NOW, NOW_S, delete, key_of, put, read, ts
from test.unit.operations.test_repacking import PackedNodeBench


@pytest.fixture
def node(tmp_path):
    made = PackedNodeBench(tmp_path)
    made.opened = made.open()
    made.store = made.opened.store
    yield made
    made.opened.close()


@pytest.fixture
def say(node, capsys):
    def run(*words, code=0):
        assert main(["--conf", str(node.conf), "--format", "json", *words]) == code
        said = capsys.readouterr()
        if code == 1 and not said.out:
            assert len(said.err.splitlines()) == 1
            return said.err
        return json.loads(said.out)

    return run


def entry_of(node, key):
    (entry,) = node.store.devices.place(key).entries()
    return entry


def spoil(node, key):
    """Damage the body of a packed object."""
    device, entry = node.store.devices.device("sda"), entry_of(node, key)
    record = device.read(entry, 0)
    with open(device.volumes.path(entry.position.volume), "r+b") as file:
        file.seek(entry.position.unit * 64 + record.header.prefix_bytes)
        file.write(b"!")


def test_list_tells_what_of_each_volume_is_dead(node, say):
    for second in range(10):
        put(node.store, key_of("o"), ts(NOW_S + second), b"x" * 1500)
    (volume,) = say("list")
    assert (volume["device"], volume["volume"], volume["is_open"]) == ("sda", 1, True)
    assert volume["size"] > 15_000 and volume["dead_percent"] > 80


def test_verify_finds_nothing_in_a_sound_device(node, say):
    for number in range(20):
        put(node.store, key_of(f"o{number % 8}"), ts(NOW_S + number), b"x" * (number * 200))
    delete(node.store, key_of("o1"), ts(NOW_S + 50))
    (report,) = say("verify")
    # The tombstone is older than reclaim_age.
    assert report["flaws"] == [] and report["live"] == 7 and report["volumes"] == 1


def test_verify_finds_damaged_bodies_lost_records_and_lost_files(node, say):
    keys = [key_of(name) for name in ("sound", "spoilt", "lost", "file")]
    for key in keys:
        put(node.store, key, ts(NOW_S), b"x" * (5000 if key.path.obj == "file" else 500))
    spoil(node, keys[1])
    device, entry = node.store.devices.device("sda"), entry_of(node, keys[2])
    with open(device.volumes.path(1), "r+b") as file:
        file.seek(entry.position.unit * 64)
        file.write(b"\0" * 64)
    (path,) = (node.root / "srv").rglob("*.data")
    path.unlink()
    (report,) = say("verify", code=2)
    found = {flaw["hash"]: flaw["reason"] for flaw in report["flaws"]}
    assert set(found) == {"", *(key.hash for key in keys[1:])}
    assert "bytes have no record" in found[""]
    assert "checksum of the body" in found[keys[1].hash]
    assert "no record can be read there" in found[keys[2].hash]
    assert found[keys[3].hash] == f"{path} is gone"


def test_the_text_tells_flaws_where_dump_shows_the_record_and_exits_as_json_does(node, capsys):
    put(node.store, key_of("o"), ts(NOW_S), b"x" * 500)
    spoil(node, key_of("o"))
    assert main(["verify", "--conf", str(node.conf)]) == 2
    offset = entry_of(node, key_of("o")).position.unit * 64
    assert f"  volume 1 offset {offset} {key_of('o').hash}: the checksum" in capsys.readouterr().out
    assert main(["dump", "1", "--conf", str(node.conf)]) == 0
    assert f"device=sda  volume=1  offset={offset}  " in capsys.readouterr().out


def test_a_compaction_that_does_nothing_tells_why(node, say, capsys):
    put(node.store, key_of("o"), ts(NOW_S), b"x" * 500)
    assert main(["compact", "--conf", str(node.conf)]) == 0
    assert capsys.readouterr().out == "nothing to do: no volume has 50 % of dead bytes or more\n"
    assert main(["compact", "--volume", "1", "--conf", str(node.conf)]) == 1
    assert "a process appends to it" in capsys.readouterr().out


def test_dead_records_with_holes_are_no_flaws(node, say):
    put(node.store, key_of("o"), ts(NOW_S), b"x" * 1000)
    spoil(node, key_of("o"))
    put(node.store, key_of("o"), ts(NOW_S + 1), b"y" * 1000)
    (report,) = say("verify")
    assert report["flaws"] == [] and (report["records"], report["live"]) == (2, 1)


def test_dump_shows_an_object_by_name_and_by_hash_and_the_records_of_a_volume(node, say):
    key = key_of("o")
    put(node.store, key, ts(NOW_S), b"old")
    put(node.store, key, ts(NOW_S + 1), b"body")
    for name in (str(key.path), key.hash):
        (record,) = say("dump", name)
        assert record["size"] == 4 and record["metadata"]["name"] == str(key.path)
        assert (record["kind"], record["policy"], record["partition"]) == ("data", "gold", 7)
        assert record["problem"] is None
    records = say("dump", "1", "--metadata")
    assert [each["is_live"] for each in records] == [False, True]
    assert records[1]["references"] == [{"partition": 7, "volume": 1, "offset": records[0]["offset"]}]
    assert records[0]["metadata"]["Content-Length"] == "3"
    assert say("dump", "AUTH_a/c/other") == []
    assert "neither" in say("dump", "nonsense", code=1)
    assert "no volume 9 is on sda" in say("dump", "9", code=1)


def test_dump_names_the_file_of_a_large_object(node, say):
    put(node.store, key_of("o"), ts(NOW_S), b"x" * 5000)
    (path,) = (node.root / "srv").rglob("*.data")
    (record,) = say("dump", str(key_of("o").path))
    assert record["is_external"] and record["file"] == str(path)


def test_compact_returns_the_space_of_volumes_above_a_dead_part(node, say):
    for number in range(30):
        put(node.store, key_of(f"o{number % 3}"), ts(NOW_S + number), b"x" * 1500)
    node.opened.close()
    # The newest volume stays: another process begins one.
    node.opened = first = node.open()
    blocker = first.store.devices.device("sda").volumes.lock(1)
    other = node.open()
    put(other.store, key_of("p"), ts(NOW_S), b"y")
    other.close()
    del blocker
    reports = say("compact", "--dead-percent", "50")
    assert [(each["volume"], each["is_removed"], each["copied"]) for each in reports] == [(1, True, 3)]
    assert [volume["volume"] for volume in say("list")] == [2]
    assert read(first.store, key_of("o0")) == b"x" * 1500


def test_a_volume_with_lost_records_is_listed_and_removed_only_when_the_loss_is_accepted(node, say):
    lost, kept = key_of("lost"), key_of("kept")
    for key in (lost, kept):
        put(node.store, key, ts(NOW_S), b"x" * 500)
    device, entry = node.store.devices.device("sda"), entry_of(node, lost)
    with open(device.volumes.path(1), "r+b") as file:
        file.write(b"\0" * 64)
        file.seek(entry.position.unit * 64 + 20)
        file.write(b"\0" * 64)
    node.opened.close()
    for path in node.root.rglob("*.mdb"):
        path.unlink()
    node.opened = node.open()
    node.store = node.opened.store
    assert node.store.stat(lost, NOW).kind == ABSENT
    blocker = node.store.devices.device("sda").volumes.lock(1)
    put(node.store, key_of("other"), ts(NOW_S), b"y")
    del blocker
    (volume, _newest) = say("list")
    assert volume["lost"] > 64
    (report,) = say("compact", "--volume", "1", code=1)
    assert not report["is_removed"] and "--accept-loss" in report["reason"]
    (report,) = say("compact", "--volume", "1", "--accept-loss")
    assert report["is_removed"] and read(node.store, kept) == b"x" * 500
    volumes = say("list")
    assert all(volume["lost"] == 0 and volume["volume"] != 1 for volume in volumes)


def test_an_index_is_made_again_only_while_no_other_process_uses_it(node, say):
    put(node.store, key_of("o"), ts(NOW_S), b"body")
    assert "stop them first" in say("rebuild", "--device", "sda", code=1)
    node.opened.close()
    for path in (node.root / "srv").rglob("*.mdb"):
        os.truncate(path, 100)
    assert main(["--conf", str(node.conf), "rebuild"]) == 0
    node.opened = node.open()
    assert read(node.opened.store, key_of("o", GOLD)) == b"body"
    with pytest.raises(IndexInUse):
        rebuild_index(node.open(), "sda")


def test_an_index_that_is_made_again_by_hand_tells_what_is_lost(node, say, capsys):
    """The former index knew where the records of a volume end; zeros at its end are no sign by themselves."""
    put(node.store, key_of("o"), ts(NOW_S), b"old")
    (volume,) = (node.root / "srv").rglob("*.volume")
    end = say("list")[0]["size"]
    put(node.store, key_of("o"), ts(NOW_S + 1), b"new")
    node.opened.close()
    sound = volume.read_bytes()
    with open(volume, "r+b") as file:
        file.write(sound[:end].ljust(len(sound), b"\0"))
    assert main(["--conf", str(node.conf), "rebuild"]) == 0
    assert "are lost" in capsys.readouterr().err
    node.opened = node.open()
    assert say("list")[0]["lost"] > 0


def test_devices_without_volumes_are_left_out_and_refused_by_name(node, say):
    assert say("list") == []
    assert "no volumes" in say("list", "--device", "sda", code=1)


def test_a_named_volume_that_no_device_has_is_refused(node, say):
    put(node.store, key_of("o"), ts(NOW_S), b"body")
    for verb in ("verify", "compact"):
        assert "no volume 9 is on sda" in say(verb, "--volume", "9", code=1)
    assert say("verify", "--volume", "1")[0]["records"] == 1


def test_a_device_that_cannot_be_opened_does_not_hide_the_others(node, capsys):
    put(node.store, key_of("o"), ts(NOW_S), b"x" * 500)
    broken = node.root / "srv/sdb/packed"
    (broken / "00000001.volume").mkdir(parents=True)
    (broken / "identity").mkdir()
    for words in (["list"], ["verify"], ["verify", "--volume", "1"], ["dump", key_of("o").hash]):
        assert main(["--conf", str(node.conf), *words]) == 1
        said = capsys.readouterr()
        assert "device=sda" in said.out
        assert said.err.startswith("swift-object-volumes: sdb: ") and len(said.err.splitlines()) == 1
    assert main(["--conf", str(node.conf), "list", "--device", "sdb"]) == 1
    assert capsys.readouterr().out == ""


def test_a_device_that_is_named_twice_is_read_once(node, say):
    put(node.store, key_of("o"), ts(NOW_S), b"body")
    assert len(say("list", "--device", "sda", "--device", "sda")) == 1


def test_a_node_whose_devices_cannot_be_found_is_not_one_without_volumes(node, say):
    (node.root / "srv/sda").rename(node.root / "sda")
    assert "no device is mounted below" in say("list", code=1)
    (node.root / "srv").rmdir()
    assert f"{node.root}/srv is no directory; see devices in [DEFAULT]" in say("verify", code=1)


def test_an_object_that_is_a_file_is_not_called_missing(node, capsys):
    put(node.store, key_of("o"), ts(NOW_S), b"body")
    assert main(["--conf", str(node.conf), "dump", "a/c/other"]) == 0
    assert "swift-get-nodes" in capsys.readouterr().out


def test_a_hash_may_have_large_letters(node, say):
    put(node.store, key_of("o"), ts(NOW_S), b"body")
    assert len(say("dump", key_of("o").hash.upper())) == 1


def test_volumes_of_another_user_are_refused_and_not_overlooked():
    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    def of_user_7(_path):
        return os.stat_result((stat.S_IFDIR, 1, 1, 2, 7, 7, 0, 0, 0, 0))

    with pytest.raises(ConfigError, match="cannot read /srv/node/sdb/packed: run this as root"):
        is_engine_directory("/srv/node/sdb/packed", stat_of=refuse)
    with pytest.raises(ConfigError, match="belongs to another user: run this as root"):
        is_engine_directory("/srv/node/sdb/packed", stat_of=of_user_7, user_id=8)
    assert all(is_engine_directory("/", stat_of=of_user_7, user_id=user_id) for user_id in (0, 7))


def test_options_may_follow_the_verb_and_numbers_are_checked(node, capsys):
    put(node.store, key_of("o"), ts(NOW_S), b"body")
    assert main(["list", "--format", "json", "--conf", str(node.conf)]) == 0
    assert json.loads(capsys.readouterr().out)[0]["volume"] == 1
    for words in (["verify", "--rate", "-5"], ["compact", "--dead-percent", "900"]):
        with pytest.raises(SystemExit) as raised:
            main([*words, "--conf", str(node.conf)])
        error = capsys.readouterr().err.splitlines()[-1]
        assert raised.value.code == 2 and words[1] in error and error.endswith(f"but is {words[2]}")
