"""The options of ``[object-replicator]`` (spec: replication.md §2.4)."""

from __future__ import annotations

from dataclasses import dataclass

from swift.config.kinds import COUNT, SECONDS, Kind, choice
from swift.config.schema import option
from swift.dbsync.rsync import check_module
from swift.obj.replication.settings import WORKERS, SyncSettings
from swift.runtime.daemon import Schedule

RSYNC, SSYNC = "rsync", "ssync"


def _parse_module(text: str) -> str:
    check_module(text.strip())
    return text.strip()


def _parse_delete(text: str) -> int:
    return 0 if text.strip().lower() == "auto" else int(COUNT.parse(text))


_MODULE = Kind("rsync module", _parse_module)
_DELETE = Kind("auto or count", _parse_delete, lambda value: str(value) if value else "auto")


@dataclass(frozen=True)
class ObjectReplicatorSettings(SyncSettings):
    """Options of the object replicator."""

    replicator_workers: int = option(0, "Processes that share the devices; 0: do not fork.", kind=WORKERS)
    sync_method: str = option(RSYNC, "Transfer method of objects: rsync or ssync.", kind=choice(RSYNC, SSYNC))
    handoffs_first: bool = option(
        False,
        "Move partitions that belong elsewhere first, and nothing else while any is left; for emergencies.",
    )
    handoffs_only: bool = option(
        False, "Only move partitions that belong elsewhere; for emergencies, not for long."
    )
    handoff_delete: int = option(
        "auto", "Copies that must have arrived before an object is removed here; auto: all.", kind=_DELETE
    )
    rsync_module: str = option(
        "{replication_ip}::object",
        "Rsync destination of objects, with keys of ring devices in braces.",
        kind=_MODULE,
    )
    rsync_timeout: float = option(900.0, "Seconds after which an rsync is ended.", kind=SECONDS)
    rsync_io_timeout: float = option(
        30.0, "Seconds without data after which rsync gives up on a node.", kind=SECONDS
    )
    rsync_bwlimit: str = option("0", "Bandwidth of each rsync as its --bwlimit has it; 0: any.")
    rsync_compress: bool = option(False, "Compress rsync transfers to other regions.")
    log_rsync_transfers: bool = option(True, "Log how many files each rsync brought.")
    rsync_error_log_line_length: int = option(
        0, "Characters after which log lines about a failed rsync are cut; 0: never.", kind=COUNT
    )

    @property
    def schedule(self) -> Schedule:
        """For the runner."""
        return self.schedule_with(self.replicator_workers)
