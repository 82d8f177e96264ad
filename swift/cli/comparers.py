"""What the commands of object replicator and reconstructor share: how their task is made."""

from __future__ import annotations

import dataclasses
from typing import Any

from swift.config.schema import Settings
from swift.obj.compare.task import CompareTask
from swift.obj.settings import ObjectSettings
from swift.obj.stores import make_stores
from swift.runtime.daemon import DaemonTask
from swift.runtime.service.daemonize import Daemon, DaemonParts
from swift.runtime.service.listeners import PortSettings
from swift.store.tier.conf import settings_of


def comparer(name: str, about: str, settings: type[Settings], task: type[CompareTask[Any]]) -> Daemon:
    """The command of one of them."""

    def make(parts: DaemonParts) -> DaemonTask:
        context = parts.context
        if PortSettings.parse(parts.conf).servers_per_port:
            # Every device has a port of its own.
            context = dataclasses.replace(context, ring_port=0)
        made: Any = task(
            context,
            parts.rings,
            parts.settings,
            make_stores(
                context, ObjectSettings.parse(parts.conf), parts.storage, tier=settings_of(parts.conf_path)
            ),
            selection=parts.selection,
        )
        result: DaemonTask = made
        return result

    return Daemon(name, "object", about, settings, make)
