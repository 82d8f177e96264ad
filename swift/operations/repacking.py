"""Conversion of a node's devices between the file engine and the packed engine, and the steps around it.

To pack, the policy gets the packed engine in swift.conf, servers are restarted, and devices are packed. To go
back, devices become files while servers still use the packed engine. Then the policy gets the file engine,
servers are restarted, and the volumes are removed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from swift.base.errors import SwiftError
from swift.operations.packed import PackedNode, SteadyPace, describe_error, engine_option
from swift.policy.policy import Policy
from swift.runtime.service.processes import RunningProcess
from swift.store.lmdbindex import IndexFailed
from swift.store.packed.device import DIRECTORY
from swift.store.packed.opening import IndexInUse, IndexOpening
from swift.store.packed.repack import Repacker, RepackReport, engine_use
from swift.store.registry import is_packed

PACKED, FILES = "packed", "files"
_RESTART = "restart the object server and all object daemons"


class RepackRefused(SwiftError):
    """The configuration does not allow a conversion; the text says what to set."""


@dataclass(frozen=True)
class RepackJob:
    """One policy on one device."""

    device: str
    policy: Policy


#: Called with each progress of a job.
Tell = Callable[[RepackJob, RepackReport], None]


def jobs_of(node: PackedNode, to: str, devices: Sequence[str], policies: Sequence[str]) -> list[RepackJob]:
    """Return what is to be converted; of policies that are not named, only those of the packed engine.

    Raises ``RepackRefused`` for policies of other engines, ``ConfigError``.
    """
    wanted = node.policies(policies)
    served = [policy for policy in wanted if is_packed(policy)]
    refused = [policy for policy in wanted if policy not in served]
    if refused and (policies or not served):
        raise RepackRefused(f"policy {refused[0].name}: {_reason(to, refused[0])}")
    names = node.device_names(devices)
    for name in names:
        # Refuses a user who may not use them, once and not for each device.
        node.has_volumes(name)
    return [RepackJob(device, policy) for device in names for policy in served]


def check_servers(node: PackedNode, running: Iterable[RunningProcess] | None = None) -> None:
    """Refuse to make records that a running object server would not see.

    Raises ``RepackRefused``, OSError.
    """
    outdated = node.outdated_servers(running)
    if outdated:
        pids = ", ".join(str(each.pid) for each in outdated)
        raise RepackRefused(
            f"swift.conf was changed after the object server (pid {pids}) was started, so it may serve only "
            f"files; {_RESTART}, then run this again"
        )


def _reason(to: str, policy: Policy) -> str:
    if to == FILES:
        return "this node uses another engine for it; there is nothing to convert"
    return (
        "this node does not use the packed engine for it; set "
        f"{engine_option(policy, 'packed')} of this node's swift.conf, {_RESTART}, then run this again"
    )


def next_steps(to: str, policies: Sequence[Policy]) -> list[str]:
    """Return what the operator does after everything was converted."""
    if to == PACKED:
        return []
    lines = " and ".join(engine_option(policy, "fs") for policy in policies)
    return [
        f"to use the file engine: set {lines} of this node's swift.conf, {_RESTART}, then run "
        "swift-object-repack --to files again, which removes the volumes"
    ]


def convert(
    node: PackedNode,
    jobs: Sequence[RepackJob],
    to: str,
    *,
    rate: float = 0.0,
    workers: int = 1,
    stopped: Callable[[], bool],
    tell: Tell,
) -> Iterator[tuple[RepackJob, RepackReport, str]]:
    """Convert; yield each job with its report and the error that ended it, empty for none."""
    steady = SteadyPace(rate, stopped)

    def pace(_bytes: int) -> None:
        steady(1)

    by_device: dict[str, list[RepackJob]] = {}
    for job in jobs:
        by_device.setdefault(job.device, []).append(job)

    def work(some: list[RepackJob]) -> list[tuple[RepackJob, RepackReport, str]]:
        return [_convert_one(node, job, to, pace, stopped, tell) for job in some]

    with ThreadPoolExecutor(max(1, workers)) as pool:
        for done in pool.map(work, by_device.values()):
            yield from done


def _convert_one(
    node: PackedNode,
    job: RepackJob,
    to: str,
    pace: Callable[[int], None],
    stopped: Callable[[], bool],
    tell: Tell,
) -> tuple[RepackJob, RepackReport, str]:
    repacker = Repacker(node.devices, job.device, job.policy, pace=pace, stopped=stopped)
    try:
        for report in repacker.run(packs=to == PACKED):
            tell(job, report)
    except (SwiftError, IndexFailed, OSError) as error:
        return job, repacker.report, describe_error(error)
    return job, repacker.report, ""


def states(node: PackedNode, devices: Sequence[str], policies: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield how far each device and policy is. Raises ``ConfigError``, OSError."""
    for device in node.device_names(devices):
        for policy in node.policies(policies):
            engine = PACKED if is_packed(policy) else FILES
            row: dict[str, object] = {"device": device, "policy": policy.name, "engine": engine}
            if not node.has_volumes(device):
                yield {**row, "state": FILES, "packed": 0, "files": None, "partitions_unindexed": None}
                continue
            use = engine_use(node.devices, device, policy)
            if engine == FILES and not use.packed:
                yield {**row, "state": FILES, "packed": 0, "files": None, "partitions_unindexed": None}
                continue
            yield {**row, "state": use.state, **asdict(use)}


def remove_volumes(node: PackedNode, device: str) -> bool:
    """Remove the volumes of a device that the file engine serves; return False if there are none.

    Raises ``RepackRefused`` while they have objects or another process uses them, OSError.
    """
    if not node.has_volumes(device):
        return False
    served = [policy for policy in node.policies() if is_packed(policy)]
    if served:
        return False
    for policy in node.policies():
        packed = engine_use(node.devices, device, policy).packed
        if packed:
            raise RepackRefused(
                f"{device} has {packed} packed objects of policy {policy.name}, which the file engine does "
                f"not serve; set {engine_option(policy, 'packed')} of this node's swift.conf, {_RESTART}, "
                "then run swift-object-repack --to files"
            )
    objection = node.open(device).agreement.objection()
    if objection:
        raise RepackRefused(f"the volumes of {device} stay: {objection}")
    node.close()
    directory = f"{node.disks.path(device)}/{DIRECTORY}"
    opening = IndexOpening(node.settings, node.store.core.disk)
    try:
        with opening.unused(directory):
            index = opening.path(directory)
            if os.path.isdir(index):
                shutil.rmtree(index)
            shutil.rmtree(directory)
    except IndexInUse:
        raise RepackRefused(
            f"processes that were started before swift.conf was changed use {directory}; {_RESTART}, "
            "then run this again"
        )
    return True


def serves_only_files(node: PackedNode, policies: Sequence[str]) -> bool:
    """Return True if no policy of this node is packed; raises ``ConfigError`` for an unknown policy."""
    return not any(map(is_packed, node.policies(policies)))
