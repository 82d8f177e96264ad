"""How long devices take is counted by device, and nothing that does not exist is."""

import pytest

from swift.base.clock import ManualClock
from swift.base.errors import DeviceUnavailable
from swift.base.timestamp import Timestamp
from swift.platform.devices import Devices
from swift.policy.policy import Policy
from swift.store.api import ReadOptions
from swift.store.observed import ObservedStore, observe
from swift.store.registry import EngineParts, StoreRegistry, load_wrapper
from swift.telemetry.metrics import Registry
from test.contract.test_store import GOLD, HASHER, key_of

VIEW = ReadOptions(1_795_000_000.0)


@pytest.fixture
def metrics():
    return Registry()


@pytest.fixture
def store(tmp_path, metrics):
    (tmp_path / "sda").mkdir()
    parts = EngineParts(Devices(str(tmp_path), mount_check=False), HASHER, ManualClock(), metrics=metrics)
    return StoreRegistry(parts, [observe]).engine(GOLD)


def counted(metrics):
    """(call, device) → how often."""
    found = {}
    for line in metrics.render().splitlines():
        if line.startswith("swift_store_seconds_count"):
            labels = dict(item.split("=") for item in line[line.index("{") + 1 : line.index("}")].split(","))
            found[labels["call"].strip('"'), labels["device"].strip('"')] = int(line.rpartition(" ")[2])
    return found


def test_calls_are_counted_by_device(store, metrics):
    key = key_of("o")
    with store.edit(key, VIEW, create=True) as edit:
        edit.delete(Timestamp(VIEW.moment_s))
    store.stat(key, VIEW)
    store.stat(key, VIEW)
    store.open(key, VIEW).close()
    store.hashes("sda", key.partition, GOLD)
    assert counted(metrics) == {
        ("change", "sda"): 1,
        ("look", "sda"): 2,
        ("open", "sda"): 1,
        ("hashes", "sda"): 1,
    }


def test_a_device_that_is_not_there_becomes_no_numbers(store, metrics):
    key = key_of("o")._replace(device="elsewhere")
    for call in (store.stat, store.open):
        with pytest.raises(DeviceUnavailable):
            call(key, VIEW)
    with pytest.raises(DeviceUnavailable), store.edit(key, VIEW, create=True):
        pass
    with pytest.raises(DeviceUnavailable):
        store.hashes("elsewhere", "1", GOLD)
    assert counted(metrics) == {}


def test_a_change_that_fails_is_not_counted(store, metrics):
    with pytest.raises(ValueError), store.edit(key_of("o"), VIEW, create=True):
        raise ValueError
    assert counted(metrics) == {}


def test_it_is_found_by_its_name(tmp_path):
    parts = EngineParts(Devices(str(tmp_path)), HASHER, ManualClock(), wrappers=("egg:swift#observed",))
    assert load_wrapper("observed") is observe
    assert isinstance(StoreRegistry(parts).engine(Policy(0, "gold", is_default=True)), ObservedStore)
