"""swift-object-relinker: split the partitions of devices while the part power of a ring is increased.

``relink`` before the increase gives every object a second place, ``cleanup`` after it takes the first one
away. Devices are worked on by processes of their own; how far each is, is kept on the device.
spec: object-disk.md §16, cli-and-config.md §9
"""

from __future__ import annotations

import argparse
import fcntl
import glob
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from swift.base.clock import SystemClock
from swift.base.errors import ConfigError, LockTimeout, SwiftError
from swift.compose import CONSOLE_KEY, Cluster, cluster_of
from swift.config.commandline import CommandLine, reports_errors
from swift.config.common import LogSettings
from swift.config.files import parser_of
from swift.config.kinds import SECONDS, Kind
from swift.config.schema import Settings, option
from swift.platform.devices import Devices
from swift.platform.disk import Disk
from swift.platform.durable import replace_file
from swift.platform.privileges import become_owner, drop_privileges
from swift.platform.regularfiles import open_or_replace, read_regular
from swift.policy.policy import Policy, with_policy_suffix
from swift.ring.ringfile import load_table
from swift.ring.split import SplitPhase, phase
from swift.ring.table import PART_POWER_MAX
from swift.runtime.service.services import SWIFT_DIR
from swift.store.api import Location, ObjectStore
from swift.store.lmdbindex import IndexFailed
from swift.store.packed.conf import packed_settings_of
from swift.store.packed.relink import PackedSplitter
from swift.store.packed.settings import PackedSettings
from swift.store.registry import EngineParts, file_store, is_packed, load_factory, packed_store
from swift.store.relink import RelinkCounts, Splitter
from swift.store.tier.conf import make_tier, settings_of
from swift.store.tier.settings import TierSettings
from swift.store.tier.store import attach
from swift.telemetry.log import Log, make_log
from swift.telemetry.recon import ReconFile

NAME = "object-relinker"
RELINK, CLEANUP = "relink", "cleanup"
EXIT_ERRORS, EXIT_NOTHING = 1, 2
#: The rings that an action needs, for an operator whose log goes to syslog.
NOTHING = {
    "relink": "no ring here is prepared for an increase of its part power; run swift-ring-builder "
    "BUILDER prepare_increase_partition_power and write_ring, and copy the ring to this node",
    "cleanup": "no ring here has had its part power increased; run swift-ring-builder BUILDER "
    "increase_partition_power (or cancel_increase_partition_power) and write_ring, and copy the ring to this "
    "node",
}
RECLAIM_AGE_S = 604800.0
PARTITION_DIGITS_MAX = len(str(1 << PART_POWER_MAX))


def _parse_workers(text: str) -> int:
    if text.strip().lower() == "auto":
        return 0
    if not (text.isascii() and text.strip().isdigit()):
        raise ValueError(f"must be auto or a whole number, not {text!r}")
    return int(text)


@dataclass(frozen=True)
class RelinkerSettings(Settings):
    """``[object-relinker]``."""

    swift_dir: str = option(SWIFT_DIR, "Directory of swift.conf and the ring files.")
    devices: str = option("/srv/node", "Directory whose subdirectories are the devices.")
    mount_check: bool = option(True, "Skip devices that are not mounted.")
    user: str = option("", "User to work as when started as root.", sample="")
    workers: int = option(
        "auto",
        "Processes among which devices are shared; auto: one for each.",
        kind=Kind("auto or count", _parse_workers),
    )
    files_per_second: float = option(0.0, "Files that a device is slowed down to; 0: no limit.", kind=SECONDS)
    stats_interval: float = option(300.0, "Seconds between reports to recon.", kind=SECONDS)
    clobber_hardlink_collisions: bool = option(
        False, "Quarantine (relink) or keep (cleanup) another file in the next place instead of an error."
    )
    recon_cache_path: str = option("/var/cache/swift", "Directory of the recon files.")
    reclaim_age: float = option(RECLAIM_AGE_S, "Age at which tombstones are removed, seconds.", kind=SECONDS)


@dataclass(frozen=True)
class RelinkJob:
    """One policy that is to be split."""

    policy: Policy
    action: str
    part_power: int
    next_part_power: int


@dataclass
class RelinkProgress:
    """Progress of a device, as stored in ``relink.<datadir>.json``."""

    path: str
    part_power: int
    next_part_power: int
    prev_part_power: int | None = None
    state: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def load(cls, device_path: str, job: RelinkJob, found: Iterable[str]) -> RelinkProgress:
        """Load the stored progress; of a file for other part powers only the previous power counts."""
        path = f"{device_path}/relink.{with_policy_suffix('objects', job.policy.index)}.json"
        fresh = cls(path, job.part_power, job.next_part_power)
        try:
            kept = json.loads(read_regular(Disk(), path))
            if kept["next_part_power"] == job.next_part_power:
                if kept["part_power"] == job.part_power:
                    fresh.state = {_partition(part): bool(done) for part, done in kept["state"].items()}
                    fresh.prev_part_power = _power(kept.get("prev_part_power"))
                else:
                    fresh.prev_part_power = _power(kept["part_power"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            fresh.state, fresh.prev_part_power = {}, None
        is_begun, limit = bool(fresh.state), fresh.limit(job)
        for part in found:
            # What came later was written by servers that link by themselves; clean it up all the same.
            if limit is None or int(part) < limit:
                fresh.state.setdefault(part, is_begun and job.action == RELINK)
        return fresh

    def limit(self, job: RelinkJob) -> int | None:
        """Partitions from here on hold nothing that belongs elsewhere; None when that is not known."""
        if job.action == RELINK:
            return 1 << job.part_power
        return None if self.prev_part_power is None else 1 << self.prev_part_power

    def save(self) -> None:
        """Keep it. Raises OSError."""
        content = {
            "part_power": self.part_power,
            "next_part_power": self.next_part_power,
            "state": self.state,
        }
        if self.prev_part_power is not None:
            content["prev_part_power"] = self.prev_part_power
        replace_file(Disk(), self.path, json.dumps(content).encode(), mode=0o644)


def _partition(name: str) -> str:
    """Return a partition of a file of progress. Raises ValueError."""
    if not (name.isascii() and name.isdigit() and len(name) <= PARTITION_DIGITS_MAX):
        raise ValueError(f"not a partition: {name!r}")
    return name


def _power(value: object) -> int | None:
    """Return a part power of a file of progress. Raises ValueError."""
    if value is not None and (not isinstance(value, int) or not 0 <= value <= PART_POWER_MAX):
        raise ValueError(f"not a part power: {value!r}")
    return value


class FilePace:
    """Not more than so many files a second."""

    def __init__(self, per_second: float):
        self._per_second = per_second
        self._next_s = time.monotonic()

    def take(self, files: int) -> None:
        """Wait until ``files`` more may be done."""
        if self._per_second <= 0:
            return
        now_s = time.monotonic()
        self._next_s = max(self._next_s, now_s - 1.0) + files / self._per_second
        if self._next_s > now_s:
            time.sleep(self._next_s - now_s)


class DeviceRelinker:
    """Splits what one device has."""

    def __init__(
        self,
        settings: RelinkerSettings,
        cluster: Cluster,
        recon: ReconFile,
        log: Log,
        parts: Sequence[str],
        tier: TierSettings | None = None,
        packed: PackedSettings | None = None,
    ):
        self._settings = settings
        self._recon = recon
        self._log = log
        self._parts = frozenset(parts)
        self.devices = Devices(settings.devices, mount_check=settings.mount_check)
        parts_of_engines = EngineParts(
            devices=self.devices,
            hasher=cluster.config.hasher,
            clock=SystemClock(),
            reclaim_age_s=settings.reclaim_age,
            notice=log.warning,
            packed=packed or PackedSettings(),
        )
        self._files = file_store(parts_of_engines)
        self._packed = packed_store(parts_of_engines)
        shared = None if tier is None else make_tier(tier, disk=self._files.core.disk, notice=log.warning)
        if shared is not None:
            attach(self._files.core, shared)

    def close(self) -> None:
        """Close the devices that are open."""
        self._packed.close()

    def _store(self, job: RelinkJob) -> ObjectStore:
        return self._packed if is_packed(job.policy) else self._files

    def _splitter(self, job: RelinkJob) -> Splitter | PackedSplitter:
        if is_packed(job.policy):
            return PackedSplitter(self._packed.devices, job.next_part_power)
        clobber = self._settings.clobber_hardlink_collisions
        return Splitter(self._files.core, job.next_part_power, clobber=clobber)

    def run(self, device: str, job: RelinkJob) -> RelinkCounts:
        """Do all partitions of a policy; the sum. Raises OSError and ``DeviceUnavailable``."""
        path = self.devices.path(device)
        datadir = with_policy_suffix("objects", job.policy.index)
        total, begin_s, told_s = RelinkCounts(), time.time(), time.monotonic()
        with _device_lock(f"{path}/.relink.{datadir}.lock"):
            found = [part for part in self._store(job).partitions(device, job.policy) if part.isdigit()]
            progress = RelinkProgress.load(path, job, found)
            todo = self._remaining_partitions(progress)
            for number, part in enumerate(todo):
                done = self._partition(device, part, job)
                total.add(done)
                if not done.errors:
                    progress.state[part] = True
                    progress.save()
                if time.monotonic() - told_s >= self._settings.stats_interval:
                    told_s = time.monotonic()
                    self._log_progress(device, job, number + 1, len(todo), total, begin_s)
            self._log_progress(device, job, len(todo), len(todo), total, begin_s)
        return total

    def _remaining_partitions(self, progress: RelinkProgress) -> list[str]:
        """Return the partitions to be done, the highest first."""
        waiting = [part for part, done in progress.state.items() if not done]
        if self._parts:
            waiting = [part for part in waiting if part in self._parts]
        return sorted(waiting, key=int, reverse=True)

    def _partition(self, device: str, part: str, job: RelinkJob) -> RelinkCounts:
        store, total, splitter = self._store(job), RelinkCounts(), self._splitter(job)
        pace, changed = FilePace(self._settings.files_per_second), set()
        for name_hash in store.inventory(device, part, job.policy):
            location = Location(device, part, job.policy, name_hash)
            if splitter.is_in_place(location):
                continue
            try:
                act = splitter.relink if job.action == RELINK else splitter.remove_old
                done = act(location)
            except (OSError, SwiftError) as error:
                self._log.error(f"cannot {job.action} {device}/{part}/{name_hash}: {error}")
                done = RelinkCounts(hash_dirs=1, errors=1)
            pace.take(done.files)
            total.add(done)
            changed.add(name_hash[-3:])
        if job.action == CLEANUP and changed and not total.errors:
            self._rehash_and_clean(device, part, job, changed)
        return total

    def _rehash_and_clean(self, device: str, part: str, job: RelinkJob, suffixes: Iterable[str]) -> None:
        """Rehash what changed; remove the partition when nothing is left in it."""
        store = self._store(job)
        if store.hashes(device, part, job.policy, recalculate=sorted(suffixes)):
            return
        try:
            with store.replication_lock(device, part, job.policy, 15.0):
                store.maintenance.remove_partition(device, part, job.policy)
        except LockTimeout:
            self._log.warning(
                f"cannot remove the empty partition directory {device}/{part}: another process holds its lock"
            )

    def _log_progress(
        self, device: str, job: RelinkJob, done: int, of: int, total: RelinkCounts, begin_s: float
    ) -> None:
        stats = {name: getattr(total, name) for name in ("hash_dirs", "files", "linked", "removed", "errors")}
        policy = {
            "step": job.action,
            "part_power": job.part_power,
            "next_part_power": job.next_part_power,
            "start_time": begin_s,
            "timestamp": time.time(),
            "parts_done": done,
            "total_parts": of,
            "total_time": time.time() - begin_s,
            "stats": stats,
        }
        have = self._recon.read().get("devices", {}).get(device, {})
        policies = {**have.get("policies", {}), str(job.policy.index): policy}
        each = policies.values()
        facts = {
            "parts_done": sum(p["parts_done"] for p in each),
            "total_parts": sum(p["total_parts"] for p in each),
            "total_time": sum(p["total_time"] for p in each),
            "stats": {name: sum(p["stats"][name] for p in each) for name in stats},
            "policies": policies,
        }
        self._recon.dump({"devices": {device: facts}})


@contextmanager
def _device_lock(path: str) -> Iterator[None]:
    """Lock the device against other relinkers. Raises ``ConfigError`` when it is locked."""
    fd = open_or_replace(Disk(), path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"another relinker is running (it holds {path})")
        yield
    finally:
        os.close(fd)


def relink_jobs(
    action: str, cluster: Cluster, names: Sequence[str], swift_dir: str, log: Log
) -> list[RelinkJob]:
    """Return the policies to which an action applies now.

    Raises ``ConfigError``, ``RingError`` and OSError.
    """
    policies = []
    for name in names:
        found = cluster.policies.named(name) or (
            cluster.policies.get(int(name)) if name.isascii() and name.isdigit() else None
        )
        if found is None:
            raise ConfigError(f"there is no storage policy {name!r}")
        policies.append(found)
    jobs = []
    for policy in policies or cluster.policies:
        path = os.path.join(swift_dir, f"{policy.ring_name}.ring.gz")
        if not names and not os.path.exists(path):
            log.warning(f"skipped policy {policy.name}: {path} does not exist")
            continue
        table = load_table(path, thorough=False)
        wanted = SplitPhase.RELINK if action == RELINK else SplitPhase.CLEANUP
        if phase(table.part_power, table.next_part_power) is not wanted or table.next_part_power is None:
            continue
        if not is_packed(policy) and load_factory(policy.diskfile_module) is not file_store:
            log.warning(
                f"skipped policy {policy.name}: its storage engine does not support part power increases"
            )
            continue
        jobs.append(RelinkJob(policy, action, table.part_power, table.next_part_power))
    return jobs


def relink_devices(
    relinker: DeviceRelinker, devices: Sequence[str], jobs: Sequence[RelinkJob], log: Log
) -> int:
    """Split some devices, one after the other; return the exit code."""
    failed = False
    for device in devices:
        for job in jobs:
            try:
                done = relinker.run(device, job)
            except (SwiftError, IndexFailed, OSError) as error:
                log.error(f"cannot {job.action} {device}: {error}")
                failed = True
                continue
            failed = failed or bool(done.errors)
            log.info(
                f"{device} {job.policy.name}: {job.action}: {done.hash_dirs} hash dirs, {done.files} files, "
                f"{done.linked} linked, {done.removed} removed, {done.errors} errors"
            )
    relinker.close()
    return EXIT_ERRORS if failed else 0


def relink_in_processes(
    relinker: DeviceRelinker, devices: Sequence[str], jobs: Sequence[RelinkJob], workers: int, log: Log
) -> int:
    """Return the same in processes that share the devices; the worst exit code."""
    count = min(workers or len(devices), len(devices))
    if count <= 1:
        return relink_devices(relinker, devices, jobs, log)
    pids = []
    for number in range(count):
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            status = EXIT_ERRORS
            try:
                status = relink_devices(relinker, devices[number::count], jobs, log)
            finally:
                os._exit(status)
        pids.append(pid)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    return EXIT_ERRORS if any(statuses) else 0


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-object-relinker",
        description="Split the partitions of devices while the part power of a ring is increased.",
        epilog="examples:\n  swift-object-relinker relink /etc/swift/object-server.conf\n"
        "  swift-object-relinker cleanup --policy gold --device sdb1",
    )
    add = parser.add_argument
    add("action", choices=(RELINK, CLEANUP), help="before the increase, or after it")
    add("conf_file", nargs="?", help="configuration with [object-relinker]")
    add("--swift-dir", help="directory of swift.conf and the rings")
    add("--policy", action="append", default=[], help="only this policy; may be repeated")
    add("--devices", help="directory of the devices")
    add("--user", help="work as this user")
    add("--device", action="append", default=[], help="only this device; may be repeated")
    add("--partition", "-p", action="append", default=[], help="only this partition; may be repeated")
    add("--skip-mount-check", action="store_true", help="also do devices that are not mounted")
    add("--files-per-second", type=float, help="slow a device down to so many files")
    add("--stats-interval", type=float, help="seconds between reports to recon")
    add("--workers", type=_parse_workers, help="processes that share the devices; auto: one for each")
    add("--logfile", help="write the log to this file, when there is no configuration file")
    add("--debug", action="store_true", help="log more")
    add(
        "--clobber-hardlink-collisions",
        action="store_true",
        help="another file in the next place is no error",
    )
    return parser


def _settings(args: argparse.Namespace) -> tuple[RelinkerSettings, dict[str, str]]:
    """Return the file's options, those of the command line over them. Raises ``ConfigError``."""
    conf: dict[str, str] = {}
    if args.conf_file:
        parser = parser_of(args.conf_file)
        conf = dict(parser.items(NAME)) if parser.has_section(NAME) else dict(parser.defaults())
    settings = RelinkerSettings.parse(conf, source=f"{args.conf_file or 'command line'} [{NAME}]")
    names = ("swift_dir", "devices", "user", "files_per_second", "stats_interval", "workers")
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if args.skip_mount_check:
        given["mount_check"] = False
    if args.clobber_hardlink_collisions:
        given["clobber_hardlink_collisions"] = True
    return replace(settings, **given), conf


def _log(args: argparse.Namespace, conf: dict[str, str]) -> Log:
    if args.debug:
        conf["log_level"] = "DEBUG"
    if not args.conf_file and args.logfile:
        file = os.open(args.logfile, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(file, 2)
    is_console = not args.conf_file or args.debug or CONSOLE_KEY in conf
    return make_log(LogSettings.parse(conf), console=is_console, name=conf.get("log_name", NAME), conf=conf)


def _become_user(settings: RelinkerSettings) -> None:
    """Stop to be root, so that servers can use what is made here; raises ``ConfigError``."""
    if settings.user:
        drop_privileges(settings.user)
        return
    devices = Devices(settings.devices, mount_check=settings.mount_check)
    usable = [f"{settings.devices}/{name}" for name in devices.names() if devices.is_usable(name)]
    stores = (path for device in usable for path in glob.glob(f"{glob.escape(device)}/objects*"))
    become_owner((*usable, *stores))


@reports_errors("swift-object-relinker", code=EXIT_ERRORS)
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0 done, 1 errors, 2 no policy to which the action applies."""
    args = make_parser().parse_intermixed_args(argv)
    settings, conf = _settings(args)
    log = _log(args, conf)
    _become_user(settings)
    cluster = cluster_of({"swift_dir": settings.swift_dir})
    jobs = relink_jobs(args.action, cluster, args.policy, settings.swift_dir, log)
    if not jobs:
        log.warning("No policy found to increase the partition power.")
        print(f"swift-object-relinker: {NOTHING[args.action]}", file=sys.stderr)
        return EXIT_NOTHING
    packed = [job.policy.name for job in jobs if is_packed(job.policy)]
    if packed and not args.conf_file:
        # Another index than that of the servers must not be made.
        raise ConfigError(
            f"policy {packed[0]} has the packed engine: name the configuration file of the object "
            "server, which has [packed]"
        )
    recon = ReconFile(settings.recon_cache_path, "relinker", log)
    recon.dump({"devices": {}, "workers": {}})
    relinker = DeviceRelinker(
        settings,
        cluster,
        recon,
        log,
        args.partition,
        settings_of(args.conf_file or ""),
        packed_settings_of(args.conf_file or ""),
    )
    devices = [name for name in relinker.devices.names() if not args.device or name in args.device]
    usable = [name for name in devices if relinker.devices.is_usable(name)]
    for name in sorted(set(devices) - set(usable)):
        log.warning(f"{name} is not mounted; skipped")
    code = relink_in_processes(relinker, usable, jobs, settings.workers, log)
    return code if len(usable) == len(devices) else EXIT_ERRORS


if __name__ == "__main__":
    raise SystemExit(main())
