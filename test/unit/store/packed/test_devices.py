"""swift/store/packed/devices.py: a look at an object judges the object, not the device."""

from __future__ import annotations

import os

import pytest

from swift.store.api import LIVE
from swift.store.packed.settings import PackedSettings
from test.contract.test_store import NOW, NOW_S, PackedBench, key_of, put, ts


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
