"""swift-recon-cron: count the container updates that wait, for recon to tell.

spec: cli-and-config.md §9
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from swift.base.errors import ConfigError, DeviceUnavailable, LockTimeout
from swift.compose import daemon_context
from swift.config.commandline import CommandLine, reports_errors
from swift.config.common import StorageSettings
from swift.config.files import parser_of, read_section
from swift.obj.settings import ObjectSettings
from swift.obj.stores import make_stores
from swift.platform.disk import Disk
from swift.platform.locks import file_lock
from swift.platform.privileges import become_owner, give_owner, make_directories
from swift.runtime.backendapp import BackendContext
from swift.store.registry import StoreRegistry
from swift.store.tier.conf import node_figures, settings_of
from swift.telemetry.recon import ReconFile

NAME = "recon-cron"
LOCK_DIRECTORY = "swift-recon-object-cron"
LOCK_TIMEOUT_S = 1.0


def count_pending(context: BackendContext, stores: StoreRegistry) -> int:
    """Return the updates that wait on all devices that can be looked at."""
    count = 0
    for policy in context.policies:
        for device in context.devices.names():
            if not context.devices.is_usable(device):
                continue
            updates = stores.at(policy, device).updates
            try:
                for group in updates.groups(device, policy):
                    objects, _others = updates.objects(device, policy, group)
                    count += sum(map(len, objects))
            except (DeviceUnavailable, OSError) as error:
                context.telemetry.log.error(f"cannot count the pending updates of {device}: {error}")
    return count


def run(path: str) -> None:
    """Count and report to recon; ends at once if another run holds the lock.

    Raises ``ConfigError`` and OSError.
    """
    if not parser_of(path).has_section("filter:recon"):
        raise ConfigError(f"{path} has no [filter:recon]")
    recon = read_section(path, "filter:recon")
    conf = read_section(path, "app:object-server")
    conf.setdefault("log_name", NAME)
    context = daemon_context(conf, name=NAME)
    stores = make_stores(context, ObjectSettings.parse(conf), StorageSettings.parse(conf))
    where = recon.get("recon_cache_path", "/var/cache/swift")
    lock = os.path.join(recon.get("recon_lock_path", "/var/lock"), LOCK_DIRECTORY)
    _become_owner_of(where, lock)
    with file_lock(Disk(), os.path.join(lock, ".lock"), LOCK_TIMEOUT_S):
        count = count_pending(context, stores)
        facts: dict[str, object] = {"async_pending": count, "async_pending_last": time.time()}
        tier = settings_of(path)
        if tier.enabled:
            facts |= {"cache_tier": node_figures(tier), "cache_tier_last": time.time()}
        ReconFile(where, "object", context.telemetry.log).dump(facts)


def _become_owner_of(cache: str, lock: str) -> None:
    """Stop to be root: work as the owner of the recon files, who then can take the lock without root too."""
    make_directories(lock)
    for path in (lock, os.path.join(lock, ".lock")):
        if os.path.exists(path) and os.path.isdir(cache):
            give_owner(path, cache)
    become_owner([cache])


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-recon-cron",
        description="Count the pending container updates for recon; run it every few minutes.",
        epilog="example: swift-recon-cron /etc/swift/object-server.conf",
    )
    parser.add_argument("config", nargs="?", help="configuration of the object server")
    return parser


@reports_errors("swift-recon-cron")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    args = make_parser().parse_args(argv)
    if not args.config:
        print("Usage: swift-recon-cron CONF_FILE\nex: swift-recon-cron /etc/swift/object-server.conf")
        return 1
    try:
        run(args.config)
    except LockTimeout:
        print("swift-recon-cron: another one is at work", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
