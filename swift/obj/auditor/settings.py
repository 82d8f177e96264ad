"""The options of ``[object-auditor]`` (spec: cli-and-config.md §5)."""

from __future__ import annotations

from dataclasses import dataclass

from swift.config.kinds import COUNT, LIST, SECONDS, Kind, integer, number
from swift.config.schema import Settings, option
from swift.runtime.daemon import Schedule

#: Age of stale partial files of rsync if rsync_timeout is unknown, seconds.
TEMPORARY_AGE_S = 86400.0
#: Seconds that ``auto`` waits longer than rsync may take.
_GRACE_S = 900.0


def _parse_sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = sorted({int(word) for word in text.split(",") if word.strip()})
    except ValueError:
        raise ValueError(f"must be sizes in bytes, separated by commas, not {text!r}")
    if sizes and sizes[0] < 0:
        raise ValueError(f"must not be negative, not {text!r}")
    return tuple(sizes)


def _parse_age(text: str) -> float:
    if text.strip().lower() == "auto":
        return AUTO
    return float(SECONDS.parse(text))


#: Stands for ``auto``.
AUTO = -1.0
SIZES = Kind("sizes in bytes", _parse_sizes, lambda sizes: ", ".join(map(str, sizes)))
AUTO_SECONDS = Kind("auto or seconds", _parse_age, lambda v: "auto" if v == AUTO else f"{v:g}")


@dataclass(frozen=True)
class ObjectAuditorSettings(Settings):
    """Options of the object auditor: pace, sizes and watchers."""

    interval: float = option(30.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    concurrency: int = option(1, "Devices read at the same time, each by a process.", kind=integer(1))
    files_per_second: float = option(20.0, "Objects read per second and process; 0: any.", kind=number(0))
    bytes_per_second: float = option(
        10_000_000.0, "Bytes read per second and process; 0: any.", kind=number(0)
    )
    scrub_days: float = option(
        0.0,
        "Days within which every object of this node is read. The auditor sets its own rate and "
        "logs when it cannot keep it; files_per_second and bytes_per_second are then ignored. 0: no "
        "deadline.",
        kind=number(0),
    )
    scrub_bytes_per_second: float = option(
        0.0, "Bytes per second and process that a promise may cost at most; 0: any.", kind=number(0)
    )
    zero_byte_files_per_second: float = option(
        50.0, "Objects per second of the pass that reads no bodies; 0: there is no such pass.", kind=number(0)
    )
    log_time: float = option(3600.0, "Seconds between reports about a long pass.", kind=SECONDS)
    object_size_stats: tuple[int, ...] = option(
        (), "Upper bounds of a histogram of object sizes, which each pass logs.", kind=SIZES
    )
    rsync_tempfile_timeout: float = option(
        AUTO,
        "Age at which partial files of rsync are removed, seconds; auto: rsync_timeout of the replicator and "
        "900 more, or a day.",
        kind=AUTO_SECONDS,
    )
    watchers: tuple[str, ...] = option(
        (), "Names of audit watchers, which have [object-auditor:watcher:<name>] for options.", kind=LIST
    )

    @property
    def schedule(self) -> Schedule:
        """Of the pass that reads everything; with a promise it has a pace of its own (``scrub``)."""
        promised = self.scrub_days > 0
        return Schedule(
            self.interval,
            0.0 if promised else self.files_per_second,
            workers=self.concurrency,
            report_interval_s=self.log_time,
            bytes_per_second=self.scrub_bytes_per_second if promised else self.bytes_per_second,
        )

    def zero_byte_schedule(self, per_second: float) -> Schedule:
        """Of the pass that reads no bodies."""
        return Schedule(self.interval, per_second, workers=self.concurrency, report_interval_s=self.log_time)


@dataclass(frozen=True)
class DarkDataSettings(Settings):
    """``[object-auditor:watcher:dark_data]``."""

    action: str = option("log", "Action for objects that no listing has: log, delete, quarantine.")
    grace_age: float = option(
        604800.0, "Seconds after its creation in which an object need not be in a listing.", kind=SECONDS
    )
    conn_timeout: float = option(0.5, "Seconds to wait for a connection to a server.", kind=SECONDS)
    node_timeout: float = option(10.0, "Seconds to wait for its response.", kind=SECONDS)
    shards_max: int = option(100, "Most shards to query for one object.", kind=COUNT)


def temporary_age_s(settings: ObjectAuditorSettings, rsync_timeout: str | None) -> float:
    """Return the age from which partial files are stale; ``rsync_timeout`` is the replicator's option, if
    set.
    """
    if settings.rsync_tempfile_timeout != AUTO:
        return settings.rsync_tempfile_timeout
    try:
        return float(rsync_timeout) + _GRACE_S if rsync_timeout else TEMPORARY_AGE_S
    except ValueError:
        return TEMPORARY_AGE_S
