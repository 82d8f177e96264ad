"""The options of ``[app:object-server]`` (spec: object-server.md §17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from swift.cluster.expiry import EXPIRING_ACCOUNT, SLICE_S
from swift.config.kinds import COUNT, SECONDS, integer, number
from swift.config.schema import Settings, option
from swift.platform.syncing import DIRTY_LIMIT

#: Headers stored with an object besides its metadata.
ALLOWED_HEADERS = (
    "content-disposition",
    "content-encoding",
    "x-delete-at",
    "x-object-manifest",
    "x-static-large-object",
    "cache-control",
    "content-language",
    "expires",
    "x-robots-tag",
)
#: Headers that describe the body; they are never copied from a request.
NEVER_STORED = frozenset(("content-length", "etag", "deleted", "x-timestamp", "content-type", "name"))


@dataclass(frozen=True)
class ObjectSettings(Settings):
    """Options of the object server."""

    #: Options of the peer that a take-over may bring along, and why they change nothing here.
    without_effect: ClassVar[Mapping[str, str]] = {
        "splice": "bodies are verified before they are sent",
        "cooperative_period": "other requests go on after every block",
        "eventlet_tpool_num_threads": "every device has its own threads, see threads_per_disk",
        "auto_create_account_prefix": "it is read from swift.conf",
    }

    conn_timeout: float = option(0.5, "Seconds to wait for a container server's connection.", kind=SECONDS)
    node_timeout: float = option(3.0, "Seconds to wait for a container server's response.", kind=SECONDS)
    container_update_timeout: float = option(
        1.0, "Seconds a client waits for container updates before they go on without it.", kind=SECONDS
    )
    disk_chunk_size: int = option(
        1 << 20,
        "Bytes to read from a disk at a time, unless checksums require another size.",
        kind=integer(4096),
    )
    keep_cache_size: int = option(
        256 << 20, "Objects up to this many bytes stay in the page cache when they are read.", kind=COUNT
    )
    keep_cache_private: bool = option(True, "Keep objects requested with a token in the page cache as well.")
    keep_cache_slo_manifest: bool = option(
        False, "Keep manifests of static large objects in the page cache for all clients."
    )
    etag_validate_pct: float = option(
        100.0, "Percentage of reads that compare the MD5 of the whole body.", kind=number(0, 100)
    )
    slow: float = option(0.0, "Seconds that a PUT or DELETE takes at least.", kind=SECONDS)
    slow_delete_log_threshold_seconds: float = option(
        120.0, "A DELETE that takes longer is logged; 0: never.", kind=SECONDS
    )
    max_upload_time: int = option(86400, "Seconds after which an upload is ended with 408.", kind=COUNT)
    network_chunk_size: int = option(65536, "Bytes to read from a client at a time.", kind=integer(1))
    mb_per_sync: int = option(512, "Megabytes after which a growing file is flushed.", kind=integer(1))
    shared_sync_dirty_limit: int = option(
        DIRTY_LIMIT,
        "Changes of one moment are made durable by one sync of their filesystem, unless the machine has more "
        "than this many bytes yet to write. 0: always one by one.",
        kind=COUNT,
    )
    allowed_headers: tuple[str, ...] = option(
        ALLOWED_HEADERS, "Headers stored with objects besides metadata."
    )
    reclaim_age: int = option(604800, "Seconds to keep a tombstone.", kind=COUNT)
    commit_window: float = option(60.0, "Seconds an uncommitted fragment is left alone.")
    replication_concurrency: int = option(
        4, "Simultaneous SSYNC sessions of all workers; 0: any number.", kind=COUNT
    )
    replication_concurrency_per_device: int = option(
        1, "Simultaneous SSYNC sessions that write to a device; 0: any number.", kind=COUNT
    )
    replication_lock_timeout: int = option(
        15, "Seconds that an SSYNC session waits for its partition and device.", kind=COUNT
    )
    replication_failure_threshold: int = option(
        100, "Failed updates of an SSYNC session from which on the ratio counts.", kind=COUNT
    )
    replication_failure_ratio: float = option(
        1.0, "Failures per success above which an SSYNC session is ended.", kind=SECONDS
    )
    threads_per_disk: int = option(
        2,
        "Threads per device for long calls, and for all while it is slow or not the only one of its process. "
        "0 runs everything on the event loop.",
        kind=COUNT,
    )
    store_wrappers: tuple[str, ...] = option(
        (),
        "Wrappers around the engines of all policies, the outermost first: entry points of the group "
        "swift.store_wrapper, e.g. egg:package#name. Set it in [DEFAULT], so that daemons have them as well.",
    )
    expiring_objects_account_name: str = option(EXPIRING_ACCOUNT[1:], "Account of the expirer queue.")
    expiring_objects_container_divisor: int = option(
        SLICE_S, "Seconds of expiry that share queue containers.", kind=integer(101)
    )

    @property
    def stored_headers(self) -> frozenset[str]:
        """``allowed_headers`` as they are looked up: lower case, without what is never stored."""
        return frozenset(name.lower() for name in self.allowed_headers) - NEVER_STORED
