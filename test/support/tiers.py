"""Cache tiers for tests."""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import replace

from swift.platform.sharedstate import TierSession
from swift.policy.policy import Policies
from swift.store.api import ObjectKey
from swift.store.layered import ForwardingMaintenance, ForwardingStore
from swift.store.reader import ANY_NAME
from swift.store.tier.policy import CLASSES
from swift.store.tier.settings import TierSettings, option_of
from swift.store.tier.store import TierStore
from swift.store.tier.tier import CacheTier, TierDependencies

#: Whether the nodes of all tests have a tier, to see what else the tests then find.
EVERYWHERE = bool(os.environ.get("SWIFT_TIER"))
_PACKED = os.environ.get("SWIFT_PACKED", "")
#: With ``SWIFT_LOCAL_READS=1`` the proxy of each cluster of processes reads the devices of all nodes itself.
LOCAL_EVERYWHERE = bool(os.environ.get("SWIFT_LOCAL_READS", ""))
#: With ``SWIFT_PACKED=mixed``, or ``mixed-7`` for other ones, some nodes of each cluster in one process do.
_MIXED = _PACKED.startswith("mixed")
#: True if the nodes of all tests pack their objects.
PACKED_EVERYWHERE = bool(_PACKED) and not _MIXED


def engine(policy_type):
    """Return the engine that tests use for policies of a type."""
    return f"egg:swift#{policy_type}.packed" if PACKED_EVERYWHERE else ""


def packs(number):
    """Return True if node ``number`` of an in-process cluster uses the packed engine by default."""
    if _MIXED:
        return random.Random(f"{_PACKED} {number}").random() < 0.5
    return PACKED_EVERYWHERE


def on_node(policies, packed):
    """Return the policies of a node with the packed or the filesystem engine."""
    engines = {
        False: "",
        True: "egg:swift#{}.packed",
    }
    return Policies(
        replace(
            policy,
            diskfile_module=engines[packed].format("erasure_coding" if policy.is_ec else "replication"),
        )
        for policy in policies
    )


def packed_names(store, device, policy):
    """Return partition → hash → names of the packed records of a device, as object files."""
    found = {}
    for partition in store.partitions(device, policy):
        for name in store.inventory(device, partition, policy):
            key = ObjectKey(device, partition, policy, ANY_NAME, name)
            names = sorted(entry.name for entry in store.devices.place(key).entries())
            found.setdefault(partition, {})[name] = names
    return found


def tier_settings(root, mode="write-through", **more):
    """Return settings of a small tier with every class on, each in ``mode`` if possible."""
    values = {"size_mb": 64, "classes": CLASSES}
    for of in CLASSES:
        allowed = mode != "write-back" or of == "hashes"
        values[option_of(of, "mode")] = mode if allowed else "write-through"
        values[option_of(of, "admission")] = "always"
    settings = TierSettings(enabled=True, path=str(root / "cache"), state_path=str(root / "state"))
    return replace(settings, **{**values, **more})


def make_tier(root, mode="write-through", **dependencies):
    return CacheTier(tier_settings(root, mode), TierDependencies(**dependencies))


class PerPolicy(ForwardingStore):
    """Stores of all policies, each with a tier around its engine, as the registry makes them."""

    def __init__(self, inner, tier):
        super().__init__(inner)
        self.tier = tier
        self._stores = {}

    def engine(self, policy):
        if policy.index not in self._stores:
            self._stores[policy.index] = TierStore(self.inner, self.tier, policy)
        return self._stores[policy.index]

    @property
    def maintenance(self):
        return MaintenancePerPolicy(self)

    def stat(self, key, options):
        return self.engine(key.policy).stat(key, options)

    def open(self, key, options):
        return self.engine(key.policy).open(key, options)

    def edit(self, key, options, **how):
        return self.engine(key.policy).edit(key, options, **how)

    def hashes(self, device, partition, policy, **how):
        return self.engine(policy).hashes(device, partition, policy, **how)

    def invalidate(self, device, partition, policy, suffixes):
        self.engine(policy).invalidate(device, partition, policy, suffixes)


class MaintenancePerPolicy(ForwardingMaintenance):
    """The maintenance interface of ``PerPolicy``."""

    def __init__(self, stores):
        super().__init__(stores.inner.maintenance)
        self._stores = stores

    def find(self, location, options):
        return self._stores.engine(location.policy).maintenance.find(location, options)

    def mark(self, device, partition, policy):
        return self._stores.engine(policy).maintenance.change_token(device, partition, policy)

    def idle_s(self, device, partition, policy):
        return self._stores.engine(policy).maintenance.idle_s(device, partition, policy)


def tier_section(cache, state, **options):
    """Return the section ``[cache-tier]`` of a configuration file, with small classes, all on."""
    values = {
        "enabled": True,
        "path": cache,
        "state_path": state,
        "size_mb": 64,
        "classes": ", ".join(CLASSES),
        "small_data_admission": "always",
        "data_admission": "always",
        **options,
    }
    return "[cache-tier]\n" + "".join(f"{name} = {value}\n" for name, value in values.items())


class LostSessions:
    """Opens tier sessions until a test removes and replaces the shared directory."""

    def __init__(self):
        self.is_lost = False
        self.now_s = 1000.0

    @property
    def dependencies(self):
        return {"open_session": self._open, "monotonic": lambda: self.now_s}

    def _open(self, directory, owner):
        if self.is_lost:
            raise NotADirectoryError(directory)
        return TierSession(directory, owner)

    def lose(self, tier):
        """Remove the shared directory at the next call of ``tier``."""
        self.is_lost = True
        shutil.rmtree(tier.settings.state_path)
        self.now_s += 3600
