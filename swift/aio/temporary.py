"""A cluster of a bench on this machine: made, run and gone afterwards, with slow devices where wanted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from swift.aio.cgroups import file_device_number, limit_read_ahead, throttled_group
from swift.aio.make import make_cluster, mount_devices, remove_cluster, unmount_devices
from swift.aio.plan import ClusterPlan
from swift.aio.supervisor import Supervisor

#: Object servers write what they have every so many MB, or all of an object would be written at its end.
SYNC_MB = 8
#: Seconds that the proxy waits for a device.
PATIENCE_S = 120


def set_options(conf: Path, app: str, **options: float) -> None:
    """Set options of an application in a configuration file; they hold after its next start."""
    lines = [line for line in conf.read_text().splitlines() if line.split(" ")[0] not in options]
    at = lines.index(f"use = egg:swift#{app}") + 1
    lines[at:at] = [f"{name} = {value}" for name, value in options.items()]
    conf.write_text("\n".join(lines) + "\n")


def set_write_pace(plan: ClusterPlan) -> None:
    """Configure constant writeback at full speed, and waiting for slow devices."""
    set_options(plan.etc / "proxy-server.conf", "proxy", node_timeout=PATIENCE_S)
    for conf in (plan.etc / "object-server").glob("*.conf"):
        set_options(conf, "object", mb_per_sync=SYNC_MB)


@contextlib.contextmanager
def running_cluster(
    plan: ClusterPlan, *, limited: Sequence[Path] = (), bytes_per_s: int = 0
) -> Iterator[Supervisor]:
    """Run a cluster; yield its supervisor.

    The devices of the ``limited`` directories, which need filesystems of their own, do so many bytes a second
    each, in both directions. Raises ``ConfigError``.
    """
    make_cluster(plan)
    if limited:
        set_write_pace(plan)
    try:
        if plan.xfs:
            mount_devices(plan)
        supervisor = Supervisor(plan, lambda _text: None)
        with contextlib.ExitStack() as limits:
            if limited:
                numbers = [file_device_number(path) for path in limited]
                for number in numbers:
                    limit_read_ahead(number)
                inside = limits.enter_context(
                    throttled_group(f"swift-{plan.root.name}", numbers, bytes_per_s)
                )
                with inside():
                    supervisor.start()
            else:
                supervisor.start()
            try:
                yield supervisor
            finally:
                supervisor.end()
    finally:
        if plan.xfs:
            unmount_devices(plan)
        remove_cluster(plan)
