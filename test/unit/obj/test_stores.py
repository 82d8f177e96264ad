"""The engines of a storage node follow its settings: limits, wrappers and the node's cache tier."""

from __future__ import annotations

from dataclasses import replace

import pytest

from swift.base.errors import ConfigError, LockTimeout
from swift.config.common import StorageSettings
from swift.obj.settings import ObjectSettings
from swift.obj.stores import EngineSettings, make_stores
from swift.platform.devices import Devices
from swift.policy.policy import ErasureCode, Policies, Policy
from swift.runtime.backendapp import BackendContext
from swift.store.observed import ObservedStore
from swift.store.packed.settings import PackedSettings
from swift.store.tier.settings import TierSettings
from swift.store.tier.store import TierStore
from swift.telemetry.telemetry import Telemetry
from test.support.object_servers import log_to
from test.support.tiers import tier_settings

GOLD = Policy(0, "gold", is_default=True)
EC = Policy(1, "ec21", ec=ErasureCode("liberasurecode_rs_vand", 2, 1, 1000))


@pytest.fixture
def context(tmp_path):
    (tmp_path / "sda").mkdir()
    return BackendContext(Devices(str(tmp_path), mount_check=False), policies=Policies([GOLD, EC]))


def made(context, *, tier=None, **options):
    ended = []
    stores = make_stores(
        context,
        ObjectSettings(**options),
        StorageSettings(),
        engines=EngineSettings(tier or TierSettings()),
        at_exit=ended.append,
    )
    return stores, ended


def test_every_policy_has_an_engine_and_keeps_it(context):
    stores, ended = made(context)
    assert stores.engine(GOLD) is stores.engine(GOLD)
    assert stores.engine(EC) is not None and ended == [stores.close]


def test_only_so_many_replicate_into_a_device_as_the_settings_say(context):
    for places, is_held in ((1, True), (0, False)):
        stores, _ = made(context, replication_concurrency_per_device=places)
        store = stores.engine(GOLD)
        with store.replication_lock("sda", "1", GOLD, 0.0):
            try:
                with store.replication_lock("sda", "2", GOLD, 0.0):
                    held = False
            except LockTimeout:
                held = True
        assert held is is_held


def test_wrappers_that_are_named_are_around_the_engine(context):
    stores, _ = made(context, store_wrappers=("observed",))
    assert isinstance(stores.engine(GOLD), ObservedStore)


def test_a_wrapper_that_nobody_knows_is_told_by_its_name(context):
    with pytest.raises(ConfigError, match="frobnicated"):
        made(context, store_wrappers=("frobnicated",))[0].engine(GOLD)


def test_a_tier_is_around_every_engine_and_ends_with_the_process(context, tmp_path):
    stores, ended = made(context, tier=tier_settings(tmp_path / "tier"))
    assert isinstance(stores.engine(GOLD), TierStore) and isinstance(stores.engine(EC), TierStore)
    assert len(ended) == 2
    ended[0]()


def test_packed_devices_and_a_tier_without_lmdb_are_refused_before_the_first_request(context, tmp_path):
    engines = EngineSettings(tier_settings(tmp_path / "tier"), lmdb_version="")
    with pytest.raises(ConfigError, match=r"needs the package lmdb .* -m pip install 'lmdb>="):
        make_stores(context, ObjectSettings(), engines=engines, at_exit=lambda _close: None)
    packed = Policy(0, "gold", is_default=True, diskfile_module="egg:swift#replication.packed")
    context = BackendContext(context.devices, policies=Policies([packed]))
    for version, words in (("", "needs the package lmdb"), ("1.4.0", "needs lmdb 2.1.1 or newer")):
        with pytest.raises(ConfigError, match=words):
            make_stores(context, ObjectSettings(), engines=EngineSettings(lmdb_version=version))


def test_a_node_with_files_alone_starts_without_lmdb(context, tmp_path):
    conf = tmp_path / "object-server.conf"
    conf.write_text("[app:object-server]\nuse = egg:swift#object\n")
    engines = replace(EngineSettings.read(str(conf)), lmdb_version="")
    make_stores(context, ObjectSettings(), engines=engines, at_exit=lambda _close: None)


def test_a_directory_of_indexes_that_is_missing_is_logged_at_the_start(context, tmp_path):
    lines, indexes = [], tmp_path / "indexes"
    packed = Policy(0, "gold", is_default=True, diskfile_module="egg:swift#replication.packed")
    context = BackendContext(context.devices, policies=Policies([packed]), telemetry=Telemetry(log_to(lines)))
    engines = EngineSettings(packed=PackedSettings(index_path=str(indexes)))

    def start():
        make_stores(context, ObjectSettings(), engines=engines, at_exit=lambda _close: None)

    start()
    (line,) = lines
    assert "requests to packed devices fail" in line and f"index_path {indexes}" in line
    indexes.mkdir()
    start()
    assert lines == [line]
