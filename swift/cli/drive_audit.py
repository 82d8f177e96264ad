"""swift-drive-audit: find devices with errors in the kernel's log, and unmount them.

The log files are read from the newest to the oldest, as far back as the configured minutes. What is found is
told in ``drive.recon``. spec: cli-and-config.md §7, §9
"""

from __future__ import annotations

import glob
import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from swift.base.errors import ConfigError
from swift.compose import CONSOLE_KEY
from swift.config.commandline import CommandLine, print_report, reports_errors
from swift.config.common import LogSettings
from swift.config.files import parser_of
from swift.config.kinds import integer
from swift.config.schema import Settings, option
from swift.platform.disk import Disk
from swift.platform.durable import replace_file
from swift.telemetry.log import Log, make_log
from swift.telemetry.recon import ReconFile

NAME = "drive-audit"
FSTAB = "/etc/fstab"
MOUNTS = "/proc/mounts"
PATTERNS = (
    r"\berror\b.*\b(sd[a-z]{1,2}\d?)\b",
    r"\b(sd[a-z]{1,2}\d?)\b.*\berror\b",
    r"\b(nvme\d+n\d+(?:p\d+)?)\b.*\berror\b",
    r"\berror\b.*\b(nvme\d+n\d+(?:p\d+)?)\b",
)
_SYSLOG = re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d")


@dataclass(frozen=True)
class DriveAuditSettings(Settings):
    """``[drive-audit]``."""

    option_patterns = ("regex_pattern_*",)

    device_dir: str = option("/srv/node", "Directory below which devices are mounted.")
    minutes: int = option(60, "Minutes of the log to examine.", kind=integer(1))
    error_limit: int = option(1, "Errors at which a device is unmounted.", kind=integer(1))
    recon_cache_path: str = option("/var/cache/swift", "Directory of the recon files.")
    unmount_failed_device: bool = option(
        True, "Unmount devices with too many errors; if false, only report them."
    )
    log_file_pattern: str = option(
        "/var/log/kern.*[!.][!g][!z]", "Files of the kernel's log, the newest name first."
    )
    log_file_encoding: str = option("auto", "Encoding of these files.")
    log_to_console: bool = option(False, "Log to the console as well.")


class MountedDevice(NamedTuple):
    """A device that the cluster uses."""

    mount_point: str
    #: The kernel's name, such as ``sdb1``.
    name: str


def mounted_below(root: str, mounts: str) -> list[MountedDevice]:
    """Return the devices mounted below a directory, by the text of ``/proc/mounts``."""
    found = []
    for line in mounts.splitlines():
        words = line.split()
        if len(words) > 1 and words[0].startswith("/dev/") and words[1].startswith(root.rstrip("/") + "/"):
            found.append(MountedDevice(words[1], os.path.basename(os.path.realpath(words[0]))))
    return found


def parse_log_time(line: str, now_s: float) -> float | None:
    """Return the time of a log line; None if it has none."""
    word = line.split(" ", 1)[0]
    try:
        return datetime.fromisoformat(word).timestamp()
    except ValueError:
        pass
    match = _SYSLOG.match(line)
    if match is None:
        return None
    now = datetime.fromtimestamp(now_s)
    try:
        moment = datetime.strptime(f"{now.year} {match[0]}", "%Y %b %d %H:%M:%S")
    except ValueError:
        return None
    if moment.timestamp() > now_s + 86400:
        # Lines of December, read in January.
        moment = moment.replace(year=now.year - 1)
    return moment.timestamp()


def lines_since(paths: Iterable[str], encoding: str, since_s: float, now_s: float) -> Iterator[str]:
    """Yield the lines of log files that are not older. Raises OSError."""
    codec = None if encoding == "auto" else encoding
    for path in paths:
        with open(path, encoding=codec, errors="replace") as file:
            lines = file.read().splitlines()
        for line in reversed(lines):
            moment = parse_log_time(line, now_s)
            if moment is None:
                continue
            if moment < since_s:
                return
            yield line


def count_errors(lines: Iterable[str], patterns: Sequence[re.Pattern[str]]) -> Counter[str]:
    """Count errors by the kernel's name of the device; a line counts once."""
    found: Counter[str] = Counter()
    for line in lines:
        for pattern in patterns:
            match = pattern.search(line)
            if match is not None:
                found[match[1]] += 1
                break
    return found


def device_errors(device: MountedDevice, errors: Mapping[str, int]) -> int:
    """Return the errors of a device: those of the mounted partition, and those of the whole disk."""
    return sum(
        count for name, count in errors.items() if name == device.name or _is_disk_of(name, device.name)
    )


def _is_disk_of(disk: str, partition: str) -> bool:
    rest = partition.removeprefix(disk)
    return rest != partition and re.fullmatch(r"p?\d+", rest) is not None


def comment_out_mount(fstab: str, mount_point: str) -> str:
    """Return the text of fstab in which a mount point is commented out."""
    out = []
    for line in fstab.splitlines(keepends=True):
        words = line.split()
        is_it = len(words) > 1 and words[1] == mount_point and not line.lstrip().startswith("#")
        out.append(f"#{line}" if is_it else line)
    return "".join(out)


def unmount(device: MountedDevice, log: Log, fstab: str = FSTAB) -> None:
    """Unmount a device, and have it stay so after a restart."""
    log.notice(f"Unmounting {device.mount_point} ({device.name})")
    done = subprocess.run(["umount", "-fl", device.mount_point], capture_output=True, text=True, check=False)
    if done.returncode:
        log.error(f"cannot unmount {device.mount_point}: {done.stderr.strip()}")
        return
    try:
        with open(fstab) as file:
            text = file.read()
        changed = comment_out_mount(text, device.mount_point)
        if changed != text:
            log.notice(f"Commenting out {device.mount_point} in {fstab}")
            replace_file(Disk(), fstab, changed.encode(), mode=os.stat(fstab).st_mode & 0o777)
    except OSError as error:
        log.error(f"cannot change {fstab}: {error}")


def audit(settings: DriveAuditSettings, patterns: Sequence[re.Pattern[str]], log: Log) -> dict[str, int]:
    """Count errors by mount point, and unmount what has too many. Raises OSError."""
    now_s = time.time()
    with open(MOUNTS) as file:
        devices = mounted_below(settings.device_dir, file.read())
    paths = sorted(glob.glob(settings.log_file_pattern), key=os.path.getmtime, reverse=True)
    lines = lines_since(paths, settings.log_file_encoding, now_s - 60 * settings.minutes, now_s)
    errors = count_errors(lines, patterns)
    found = {}
    for device in devices:
        count = device_errors(device, errors)
        found[device.mount_point] = count
        if count >= settings.error_limit:
            log.warning(f"{device.mount_point} ({device.name}) has {count} errors")
            if settings.unmount_failed_device:
                unmount(device, log)
    unknown = sorted(
        set(errors) - {n for d in devices for n in errors if n == d.name or _is_disk_of(n, d.name)}
    )
    if unknown:
        log.warning(
            f"errors of devices that are not mounted below {settings.device_dir}: {', '.join(unknown)}"
        )
    return found


def read_conf(path: str) -> tuple[DriveAuditSettings, list[re.Pattern[str]], dict[str, str]]:
    """Return the settings, the patterns and the raw options. Raises ``ConfigError``."""
    parser = parser_of(path)
    if not parser.has_section(NAME):
        raise ConfigError(f"{path} has no [{NAME}]")
    conf = dict(parser.items(NAME))
    settings = DriveAuditSettings.parse(conf, source=f"{path} [{NAME}]")
    try:
        patterns = read_conf_patterns(conf)
    except re.error as error:
        raise ConfigError(f"{path} [{NAME}]: a regex_pattern is no good: {error}")
    if any(pattern.groups < 1 for pattern in patterns):
        raise ConfigError(f"{path} [{NAME}]: the first group of each regex_pattern must be the device")
    return settings, patterns, conf


def read_conf_patterns(conf: Mapping[str, str]) -> list[re.Pattern[str]]:
    """Return the patterns of kernel errors; the built-in ones when none is configured.

    Raises ``re.error``.
    """
    given = [conf[name] for name in sorted(conf) if name.startswith("regex_pattern_")]
    return [re.compile(text) for text in given or PATTERNS]


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-drive-audit",
        description="Find devices with errors in the kernel's log, and unmount them; run it hourly, as root.",
        epilog="example: swift-drive-audit /etc/swift/drive-audit.conf",
    )
    parser.add_argument("config", nargs="?", help="configuration file with [drive-audit]")
    parser.add_format("print what was found")
    return parser


@reports_errors("swift-drive-audit", LookupError)
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    args = make_parser().parse_args(argv)
    if not args.config:
        print("Usage: swift-drive-audit CONF_FILE")
        return 1
    if not os.path.exists(args.config):
        print(f"Unable to read config file {args.config}")
        return 1
    settings, patterns, conf = read_conf(args.config)
    if settings.log_to_console:
        conf[CONSOLE_KEY] = "true"
    log = make_log(
        LogSettings.parse(conf), console=settings.log_to_console, name=conf.get("log_name", NAME), conf=conf
    )
    found = audit(settings, patterns, log)
    total = sum(found.values())
    ReconFile(settings.recon_cache_path, "drive", log).dump({**found, "drive_audit_errors": total})
    if not total:
        log.notice("No drive errors found")
    print_report(args, found)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
