"""Counts the replicas on the devices of a cluster on this machine, without any daemon."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from swift.aio.plan import ClusterPlan
from swift.base.timestamp import Timestamp
from swift.cluster.rings import Rings
from swift.config.cluster import read_cluster_config
from swift.policy.policy import Policies, Policy
from swift.ring.view import RingView
from swift.store.layout import DATA, TOMBSTONE, FileName, UnexpectedName, parse_name

#: An object: the index of its policy, its partition and its hash.
ObjectId = tuple[int, int, str]


@dataclass(frozen=True)
class MissingReplicas:
    """Versions that primaries lack."""

    copies: int
    objects: int
    known: int

    def __str__(self) -> str:
        return f"{self.copies} copies of {self.objects} of {self.known} objects are missing"


class ReplicaCounter:
    """Reads the devices of a cluster."""

    def __init__(self, plan: ClusterPlan):
        self._plan = plan
        policies = Policies.parse(read_cluster_config(str(plan.etc / "swift.conf")).sections)
        rings = Rings(str(plan.etc), policies)
        self._views: dict[int, tuple[Policy, RingView]] = {
            policy.index: (policy, rings.object(policy).view()) for policy in policies
        }

    def versions(self) -> dict[ObjectId, Timestamp]:
        """Return the newest version of every object that any device has, tombstones among them."""
        newest: dict[ObjectId, Timestamp] = {}
        for device in self._plan.device_paths():
            for index, (policy, _view) in self._views.items():
                for part, name, files in _objects(str(device), policy):
                    key = index, part, name
                    # An archive that was never committed is no version.
                    written = [file.timestamp for file in files if file.durable or policy.ec is None]
                    written += [file.timestamp for file in files if file.extension == TOMBSTONE]
                    if written:
                        newest[key] = max(newest.get(key, max(written)), *written)
        return newest

    def missing_replicas(self, versions: dict[ObjectId, Timestamp]) -> MissingReplicas:
        """Return the replicas of these or newer versions that primaries lack."""
        copies = objects = 0
        for (index, part, name), version in versions.items():
            policy, view = self._views[index]
            missing = 0
            for node in view.primaries(part):
                device = self._plan.device_path(node.device)
                files = _files(f"{device}/{_objects_directory(policy)}/{part}/{name[-3:]}/{name}", policy)
                wanted = (node.index or 0) if policy.ec else None
                missing += not any(_is_replica_of(file, version, wanted) for file in files)
            copies += missing
            objects += missing > 0
        return MissingReplicas(copies, objects, len(versions))


def _is_replica_of(file: FileName, version: Timestamp, fragment: int | None) -> bool:
    if file.timestamp < version:
        return False
    return file.extension == TOMBSTONE or (file.extension == DATA and file.fragment in (fragment, None))


def _objects_directory(policy: Policy) -> str:
    return "objects" if policy.index == 0 else f"objects-{policy.index}"


def _objects(device: str, policy: Policy) -> Iterator[tuple[int, str, list[FileName]]]:
    root = f"{device}/{_objects_directory(policy)}"
    for part in _names(root):
        if not part.isdigit():
            continue
        for suffix in _names(f"{root}/{part}"):
            for name in _names(f"{root}/{part}/{suffix}"):
                yield int(part), name, _files(f"{root}/{part}/{suffix}/{name}", policy)


def _files(directory: str, policy: Policy) -> list[FileName]:
    found = []
    for name in _names(directory):
        try:
            found.append(parse_name(name, policy.ec.replicas if policy.ec else None))
        except UnexpectedName:
            continue
    return [file for file in found if file.extension in (DATA, TOMBSTONE)]


def _names(directory: str) -> list[str]:
    """Return the entries of a directory; none when it is no directory, or its disk is gone."""
    try:
        return os.listdir(directory)
    except OSError:
        return []
