"""A cluster of a bench on this machine: made, run and gone afterwards, with slow devices where wanted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from swift.bench.limits import device_of, throttled
from swift.cli.aio.make import make_cluster, mount_devices, remove_cluster, unmount_devices
from swift.cli.aio.plan import Plan
from swift.cli.aio.supervisor import Supervisor


@contextlib.contextmanager
def running(plan: Plan, *, limited: Sequence[Path] = (), bytes_per_s: int = 0) -> Iterator[Supervisor]:
    """The supervisor of a running cluster.

    The devices of the ``limited`` directories, which need filesystems of their own, do so many bytes a second
    each, in both directions. Raises ``ConfigError``.
    """
    make_cluster(plan)
    try:
        if plan.xfs:
            mount_devices(plan)
        supervisor = Supervisor(plan, lambda _text: None)
        with contextlib.ExitStack() as limits:
            if limited:
                numbers = [device_of(path) for path in limited]
                inside = limits.enter_context(throttled(f"swift-{plan.root.name}", numbers, bytes_per_s))
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
