"""swift/store/packed/opening.py: who shares an index, and who leaves it whole."""

from __future__ import annotations

import json

import pytest

from swift.base.errors import ConfigError
from swift.platform.disk import Disk
from swift.store.lmdbindex import IndexFailed
from swift.store.packed.opening import DeviceIndex, IndexOpening
from swift.store.packed.settings import PackedSettings


def opened(root, memory="memory", boot="boot"):
    return DeviceIndex(str(root / "index"), boot, str(root / memory))


def put(index):
    with index.writing() as writing:
        writing.put(b"key", b"value")


def test_an_index_that_its_last_user_closed_survives_a_boot(tmp_path):
    index, other = opened(tmp_path), opened(tmp_path)
    put(index)
    index.close()
    other.close()
    again = opened(tmp_path, memory="memory of another boot", boot="another")
    assert again.get(b"key") == b"value"
    again.close()


def test_an_index_that_one_process_still_uses_is_not_told_to_be_closed(tmp_path):
    index, other = opened(tmp_path), opened(tmp_path)
    index.close()
    assert json.loads((tmp_path / "index/index.json").read_text())["closed"] is False
    other.close()
    assert json.loads((tmp_path / "index/index.json").read_text())["closed"] is True


def test_processes_that_do_not_share_memory_do_not_share_an_index(tmp_path):
    index = opened(tmp_path)
    put(index)
    with pytest.raises(ConfigError, match="the same .*memory of a container, also in containers"):
        opened(tmp_path, memory="memory of a container")
    assert index.get(b"key") == b"value"
    index.close()
    opened(tmp_path, memory="memory of a container").close()


def test_indexes_are_on_their_devices_or_in_a_directory_each(tmp_path):
    state = str(tmp_path / "state")
    on_device = IndexOpening(PackedSettings(state_path=state), Disk())(str(tmp_path / "sda/packed"))
    assert list((tmp_path / "sda/packed/index").glob("*.mdb"))
    (tmp_path / "ssd").mkdir()
    settings = PackedSettings(state_path=state, index_path=str(tmp_path / "ssd"))
    elsewhere = [IndexOpening(settings, Disk())(str(tmp_path / name / "packed")) for name in ("sdb", "sdc")]
    assert len(list((tmp_path / "ssd").iterdir())) == 2
    for index in (on_device, *elsewhere):
        index.close()


def test_no_index_is_made_where_its_file_system_is_not_mounted(tmp_path):
    settings = PackedSettings(state_path=str(tmp_path / "state"), index_path=str(tmp_path / "ssd/index"))
    opening = IndexOpening(settings, Disk())
    with pytest.raises(IndexFailed, match="ssd/index .*is no directory; mount its file system"):
        opening(str(tmp_path / "sda/packed"))
    with pytest.raises(OSError, match="mount its file system"), opening.unused(str(tmp_path / "sda/packed")):
        pass
    assert not (tmp_path / "ssd").exists()
