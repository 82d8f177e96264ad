"""swift/store/packed/devices.py: a look at an object judges the object, not the device."""

from __future__ import annotations

import os

import pytest

from swift.store.api import LIVE
from swift.store.packed.settings import PackedSettings
from test.contract.test_store import NOW, NOW_S, PackedBench, key_of, put, read, ts


@pytest.fixture
def bench(tmp_path):
    made = PackedBench(tmp_path)
    (tmp_path / "ssd").mkdir()
    made._settings = PackedSettings(state_path=str(tmp_path / "state"), index_path=str(tmp_path / "ssd"))
    made.store = made.make()
    yield made
    made.store.close()


def test_nothing_is_quarantined_because_the_device_was_replaced(bench):
    put(bench.store, key_of(), ts(NOW_S), b"body")
    packed = bench.root / "sda/packed"
    os.rename(packed, bench.root / "away")
    packed.mkdir()
    bench.store.devices.device("sda").volumes.close()
    with pytest.raises(OSError, match="gone"):
        bench.store.stat(key_of(), NOW)
    assert not (bench.root / "sda/quarantined").exists()
    packed.rmdir()
    os.rename(bench.root / "away", packed)
    assert bench.store.stat(key_of(), NOW).kind == LIVE


@pytest.mark.parametrize("make", (os.mkdir, os.mkfifo, lambda path: os.symlink(path, path)))
@pytest.mark.parametrize("is_index_lost", (False, True))
def test_what_has_the_name_of_a_volume_and_is_no_file_does_not_stop_a_device(bench, make, is_index_lost):
    put(bench.store, key_of(), ts(NOW_S), b"body")
    bench.store.close()
    make(bench.root / "sda/packed/00000007.volume")
    for index in (bench.root.parent / "ssd").rglob("*.mdb") if is_index_lost else ():
        index.unlink()
    bench.store = bench.make()
    assert read(bench.store, key_of()) == b"body"
    put(bench.store, key_of("other"), ts(NOW_S), b"other")
    assert read(bench.store, key_of("other")) == b"other"
