"""Policies find their engines, ours or a third party's."""

from __future__ import annotations

import pytest

from swift.base.clock import ManualClock
from swift.base.errors import ConfigError
from swift.base.hashing import PathHasher
from swift.platform.devices import Devices
from swift.policy.policy import Policy
from swift.store.api import DELETED
from swift.store.engine import FileStore
from swift.store.layered import ForwardingStore
from swift.store.registry import EngineParts, StoreRegistry, file_store, is_packed, load_factory
from test.contract.test_store import NOW, NOW_S, key_of, ts


@pytest.fixture
def registry(tmp_path):
    return StoreRegistry(EngineParts(Devices(str(tmp_path)), PathHasher(b"p"), ManualClock()))


def test_policies_without_a_module_share_the_filesystem_engine(registry):
    one = registry.engine(Policy(0, "a", is_default=True))
    other = registry.engine(Policy(1, "b", diskfile_module="egg:swift#replication.fs"))
    assert isinstance(one, FileStore)
    assert one is other is registry.engine(Policy(0, "a"))


def test_an_unknown_module_is_a_configuration_error(registry):
    installed = "'egg:absent#engine' .*installed are .*egg:swift#replication.packed"
    with pytest.raises(ConfigError, match=f"swift.conf: diskfile_module {installed}"):
        registry.engine(Policy(2, "c", diskfile_module="egg:absent#engine"))
    with pytest.raises(ConfigError) as raised:
        load_factory("egg:absent#engine")
    assert str(raised.value).count("replication.packed") == 1


def test_the_built_in_names_are_ours():
    assert load_factory("") is file_store


def named(name):
    """A wrapper factory whose wrappers tell their name."""

    def wrap(store, _parts, _policy):
        made = ForwardingStore(store)
        made.name = name
        return made

    return wrap


def test_wrappers_are_put_around_every_engine_the_first_outermost(tmp_path):
    parts = EngineParts(Devices(str(tmp_path)), PathHasher(b"p"), ManualClock())
    registry = StoreRegistry(parts, [named("outer"), named("inner")])
    outer = registry.engine(Policy(0, "a", is_default=True))
    assert (outer.name, outer.inner.name) == ("outer", "inner")
    assert isinstance(outer.inner.inner, FileStore)
    assert registry.engine(Policy(1, "b")).inner.inner is outer.inner.inner


def test_an_unknown_wrapper_is_a_configuration_error(tmp_path):
    parts = EngineParts(
        Devices(str(tmp_path)), PathHasher(b"p"), ManualClock(), wrappers=("egg:absent#engine",)
    )
    with pytest.raises(ConfigError, match=r"store_wrappers 'egg:absent#engine'"):
        StoreRegistry(parts)


THIRD_PARTY = """
from test.support.memoryengine import MemoryStore

class Engine(MemoryStore):
    is_closed = False

    def close(self):
        self.is_closed = True

def memory(parts, policy):
    return Engine(["sda"], hasher=parts.hasher, clock=parts.clock)
"""


def test_a_package_outside_of_the_tree_registers_an_engine(tmp_path, monkeypatch):
    site = tmp_path / "site"
    facts = site / "thirdparty-1.0.dist-info"
    facts.mkdir(parents=True)
    (site / "thirdparty.py").write_text(THIRD_PARTY)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: thirdparty\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[swift.diskfile]\nmemory = thirdparty:memory\n")
    monkeypatch.syspath_prepend(str(site))
    policy = Policy(0, "a", is_default=True, diskfile_module="egg:thirdparty#memory")
    parts = EngineParts(Devices(str(tmp_path)), PathHasher(b"p"), ManualClock(NOW_S))
    registry = StoreRegistry(parts, [named("wrapper")])
    store, key = registry.at(policy, "sda"), key_of()._replace(policy=policy)
    assert not store.stat(key, NOW).exists
    store.change(key, NOW, lambda edit: edit.delete(ts(NOW_S)), create=True)
    assert (store.stat(key, NOW).kind, is_packed(policy)) == (DELETED, False)
    registry.close()
    assert registry.engine(policy).inner.is_closed
