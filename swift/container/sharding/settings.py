"""The options of ``[container-sharder]`` (spec: cli-and-config.md §4, account-container.md §19)."""

from __future__ import annotations

from dataclasses import dataclass

from swift.base.errors import ConfigError
from swift.config.kinds import COUNT, SECONDS, Kind, integer, number
from swift.config.schema import Settings, option
from swift.dbsync.settings import ReplicatorSettings
from swift.runtime.daemon import Schedule

_QUORUM = Kind(
    "auto or count",
    lambda text: -1 if text.strip().lower() == "auto" else int(COUNT.parse(text)),
    lambda value: "auto" if value < 0 else str(value),
)
_PERCENT = number(0)


@dataclass(frozen=True)
class ContainerSharderSettings(Settings):
    """Options of the container sharder."""

    auto_shard: bool = option(False, "Split large containers automatically, without an operator's command.")
    interval: float = option(30.0, "Seconds from the start of a pass to the next.", kind=SECONDS)
    stats_interval: float = option(3600.0, "Seconds between log lines about a long pass.", kind=SECONDS)
    databases_per_second: float = option(50.0, "Databases begun per second; 0: any.", kind=number(0))
    shard_container_threshold: int = option(
        1_000_000, "Objects from which on a container is split.", kind=integer(1)
    )
    rows_per_shard: int = option(0, "Objects of a new shard; 0: half the threshold.", kind=COUNT)
    minimum_shard_size: int = option(
        0, "Objects that the last shard has at least; 0: a fifth of rows_per_shard.", kind=COUNT
    )
    shrink_threshold: int = option(
        0, "Objects below which a shard is merged into the next; 0: by shard_shrink_point.", kind=COUNT
    )
    shard_shrink_point: float = option(10.0, "The same as a percentage of the threshold.", kind=_PERCENT)
    expansion_limit: int = option(
        0, "Objects that merged shards have at most; 0: by shard_shrink_merge_point.", kind=COUNT
    )
    shard_shrink_merge_point: float = option(
        75.0, "The same as a percentage of the threshold.", kind=_PERCENT
    )
    max_shrinking: int = option(1, "Shards merged into one at a time.", kind=integer(1))
    max_expanding: int = option(-1, "Shards that take others in at a time; -1: any.", kind=integer(-1))
    shard_scanner_batch_size: int = option(
        10, "Shard ranges to find in one pass of a container.", kind=integer(1)
    )
    cleave_batch_size: int = option(2, "Shards filled in one pass of a container.", kind=integer(1))
    cleave_row_batch_size: int = option(10_000, "Rows copied at a time.", kind=integer(1))
    shard_replication_quorum: int = option(
        "auto", "Copies of a new shard before the next; auto: a majority.", kind=_QUORUM
    )
    existing_shard_replication_quorum: int = option(
        "auto", "The same of a shard that has objects already.", kind=_QUORUM
    )
    node_timeout: float = option(10.0, "Seconds to wait for a node's response.", kind=SECONDS)
    conn_timeout: float = option(5.0, "Seconds to wait for a connection to one.", kind=SECONDS)
    reclaim_age: float = option(604800.0, "Seconds after which deleted shards are forgotten.", kind=SECONDS)
    rsync_module: str = option("", "As of the container replicator.")
    broker_timeout: float = option(60.0, "Seconds to wait for others that write to a database.", kind=SECONDS)
    recon_candidates_limit: int = option(
        5, "Containers that recon lists as due for splitting, or for merging; -1: all.", kind=integer(-1)
    )
    recon_sharded_timeout: float = option(
        43200.0, "Seconds for which recon shows a container that has been split.", kind=SECONDS
    )
    container_sharding_timeout: float = option(
        172800.0, "Seconds after which a warning reports a split that has not ended.", kind=SECONDS
    )
    periodic_warnings_interval: float = option(
        86400.0, "Seconds between two warnings of the same kind about a container.", kind=SECONDS
    )
    request_tries: int = option(3, "Number of times to try a request to the root.", kind=integer(1))
    internal_client_conf_path: str = option(
        "/etc/swift/internal-client.conf", "Configuration of the pipeline for requests to root containers."
    )

    @property
    def schedule(self) -> Schedule:
        """The same for the runner."""
        # OpenStack Swift's sharder reports runs with ``--partitions``, too.
        return Schedule(
            self.interval,
            self.databases_per_second,
            report_interval_s=self.stats_interval,
            reports_selections=True,
        )

    @property
    def shard_rows(self) -> int:
        """Objects of a new shard."""
        return self.rows_per_shard or max(self.shard_container_threshold // 2, 1)

    @property
    def minimum_rows(self) -> int:
        """Objects that the last shard has at least."""
        return self.minimum_shard_size or max(self.shard_rows // 5, 1)

    @property
    def shrink_below(self) -> int:
        """Objects below which a shard is merged into the next."""
        return self.shrink_threshold or int(self.shard_container_threshold * self.shard_shrink_point / 100)

    @property
    def expand_to(self) -> int:
        """Objects that merged shards have at most."""
        return self.expansion_limit or int(
            self.shard_container_threshold * self.shard_shrink_merge_point / 100
        )

    def check(self) -> None:
        """Raise ``ConfigError`` for sizes that would split and merge for ever."""
        for is_wrong, words in (
            (self.minimum_rows > self.shard_rows, "minimum_shard_size must not exceed rows_per_shard"),
            (
                self.shard_rows >= self.shard_container_threshold > 1,
                "rows_per_shard must be below shard_container_threshold",
            ),
            (self.shrink_below > self.minimum_rows, "shrink_threshold must not exceed minimum_shard_size"),
            (
                self.expand_to >= self.shard_container_threshold > 1,
                "expansion_limit must be below shard_container_threshold",
            ),
        ):
            if is_wrong:
                raise ConfigError(f"[container-sharder] {words}")

    def replication(self) -> ReplicatorSettings:
        """Return the settings for the replication of shards."""
        return ReplicatorSettings(
            node_timeout=self.node_timeout,
            conn_timeout=self.conn_timeout,
            reclaim_age=self.reclaim_age,
            rsync_module=self.rsync_module,
        )
