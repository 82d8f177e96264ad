"""The options of ``[app:proxy-server]`` (spec: proxy.md §19, cli-and-config.md §6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from swift.base.truth import is_true
from swift.config.kinds import COUNT, SECONDS, Kind, choice, integer, number
from swift.config.schema import Settings, option

PERCENT = number(0, 100)
#: ``auto`` or a number of nodes.
AUTO_OR_COUNT = Kind(
    "auto or count",
    lambda text: None if text.strip().lower() == "auto" else COUNT.parse(text),
    lambda value: "auto" if value is None else str(value),
)
#: A boolean that may be left open.
MAYBE = Kind(
    "boolean or empty",
    lambda text: is_true(text) if text.strip() else None,
    lambda value: "" if value is None else str(value).lower(),
)

OWNER_HEADERS = (
    "x-container-read",
    "x-container-write",
    "x-container-sync-key",
    "x-container-sync-to",
    "x-account-meta-temp-url-key",
    "x-account-meta-temp-url-key-2",
    "x-container-meta-temp-url-key",
    "x-container-meta-temp-url-key-2",
    "x-account-access-control",
)


@dataclass(frozen=True)
class ProxySettings(Settings):
    """Options of the proxy application."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "namespace_cache_tokens_per_session": "each request that misses the cache fetches shard ranges",
        "namespace_avg_backend_fetch_time": "there are no tokens to wait for",
        "object_chunk_size": "the size of reads from storage servers is chosen by the data path",
        "object_post_as_copy": "POST changes metadata in place",
    }

    account_autocreate: bool = option(False, "Create accounts at their first use.")
    allow_account_management: bool = option(False, "Allow PUT and DELETE of accounts.")
    restamp_ahead_max: float = option(
        30.0,
        "Date changes above newer states up to so far ahead of this proxy's clock, seconds; beyond: 503.",
        kind=SECONDS,
    )
    allow_open_expired: bool = option(False, "Let X-Open-Expired read expired objects.")
    recheck_account_existence: float = option(60.0, "Seconds to cache account facts.", kind=SECONDS)
    recheck_container_existence: float = option(60.0, "Seconds to cache container facts.", kind=SECONDS)
    account_existence_skip_cache_pct: float = option(
        0.0, "Percent of account look-ups that bypass memcached and query the servers.", kind=PERCENT
    )
    container_existence_skip_cache_pct: float = option(
        0.0, "Percent of container look-ups that bypass memcached and query the servers.", kind=PERCENT
    )
    recheck_updating_shard_ranges: float = option(
        3600.0, "Seconds to cache which shards take the rows of a split container's objects.", kind=SECONDS
    )
    container_updating_shard_ranges_skip_cache_pct: float = option(
        0.0,
        "Percent of look-ups of such shards that bypass memcached and query the servers.",
        kind=PERCENT,
    )
    recheck_listing_shard_ranges: float = option(
        600.0, "Seconds to cache which shards a split container's listing is put together from.", kind=SECONDS
    )
    container_listing_shard_ranges_skip_cache_pct: float = option(
        0.0,
        "Percent of look-ups of those that bypass memcached and query the servers.",
        kind=PERCENT,
    )
    client_chunk_size: int = option(65536, "Bytes read from a client at a time.", kind=integer(1024))
    node_timeout: float = option(10.0, "Seconds to wait for a backend's response or bytes.", kind=SECONDS)
    recoverable_node_timeout: float = option(
        -1.0, "node_timeout of reads that another node can take over.", sample="node_timeout"
    )
    conn_timeout: float = option(0.5, "Seconds to wait for a backend connection.", kind=SECONDS)
    half_is_quorum: bool = option(
        False,
        "Let half of an even number of replicas acknowledge a write, as OpenStack Swift does; more than half"
        " must otherwise.",
    )
    weak_if_none_match: bool = option(
        False,
        "While object servers of OpenStack Swift take part, let each node evaluate If-None-Match: * "
        "by itself, as OpenStack Swift does, instead of responding 501: of two simultaneous "
        "creators both may succeed.",
    )
    post_quorum_timeout: float = option(
        0.5, "Seconds to wait for more responses after a quorum.", kind=SECONDS
    )
    error_suppression_interval: float = option(
        60.0,
        "Longest time in seconds to avoid a failing node: it is tried again after 1, 2, 4 … "
        "seconds, every 8 seconds at least if it could not be reached, after its 507 only after all of "
        "them; one success ends it. An avoided node still gets requests when no other node can serve them.",
        kind=SECONDS,
    )
    error_suppression_limit: int = option(
        10,
        "Errors, each within the interval after the one before, after which a node is avoided.",
        kind=COUNT,
    )
    max_containers_per_account: int = option(0, "Refuse further containers; 0 is no limit.", kind=COUNT)
    max_containers_whitelist: tuple[str, ...] = option((), "Accounts without that limit.")
    deny_host_headers: tuple[str, ...] = option((), "Host names that are refused with 403.")
    sorting_method: str = option(
        "shuffle", "Order of primaries.", kind=choice("shuffle", "timing", "affinity")
    )
    timing_expiry: float = option(300.0, "Seconds to use a measured response time.", kind=SECONDS)
    read_affinity: str = option("", "Priorities like r1z1=100, r1=200 for sorting_method affinity.")
    write_affinity: str = option("", "Regions and zones like r1, r2z3 that take writes first.")
    write_affinity_node_count: str = option("2 * replicas", "Local nodes tried first by writes.")
    write_affinity_handoff_delete_count: int | None = option(
        None,
        "Local handoffs that deletions also go to; auto is one for each remote primary.",
        kind=AUTO_OR_COUNT,
    )
    request_node_count: str = option("2 * replicas", "Nodes tried by one request.")
    rebalance_missing_suppression_count: int = option(
        1, "404s without a timestamp that a read ignores.", kind=COUNT
    )
    local_reads: tuple[str, ...] = option(
        (),
        "Configuration files of this machine's object servers, e.g. /etc/swift/object-server.conf, whose "
        "devices the proxy reads itself, as their user. Empty: all reads go over the network.",
    )
    concurrent_gets: bool = option(False, "Ask further replicas while a slow one is awaited.")
    concurrency_timeout: float = option(
        0.5, "Seconds until the request goes to the next replica as well.", kind=SECONDS
    )
    concurrent_ec_extra_requests: int = option(
        0, "Further fragment archives to request at once with concurrent_gets.", kind=COUNT
    )
    striping_memory: int = option(
        0,
        "Bytes that a GET of a large object may hold to fetch it from several nodes at once; 0 fetches from"
        " one. It is worth it where one client is to be served faster than one device reads.",
        kind=COUNT,
    )
    striping_unit: int = option(
        4 << 20, "Bytes that such a GET requests from a node at a time.", kind=integer(65536)
    )
    striping_from: int = option(
        32 << 20, "Smaller objects, and ranges, are fetched from one node.", kind=COUNT
    )
    strong_listing: str = option(
        "off",
        "Containers in which writes are acknowledged when a majority of the container's servers has "
        "the row, and which list the rows of such a majority: off, all, or marked: those with "
        "X-Container-Meta-Strong-Listing: true.",
        kind=choice("off", "marked", "all"),
    )
    upload_memory: int = option(
        0,
        "Bytes that a PUT of a large object may buffer for slow nodes; 0: send every piece to all "
        "nodes before the next one is read.",
        kind=COUNT,
    )
    upload_patience: float = option(
        10.0,
        "Seconds in all that such a PUT waits for a slow node once its buffer is full, before it "
        "continues without the node, if the others are enough.",
        kind=SECONDS,
    )
    answer_insufficient_storage: bool = option(
        False,
        "Answer 507 to the head of a large upload that fails because nodes have no room for it; 503 as"
        " OpenStack Swift does otherwise.",
    )
    log_handoffs: bool = option(True, "Log the use of more handoffs than expected.")
    swift_owner_headers: tuple[str, ...] = option(OWNER_HEADERS, "Headers only owners may see and set.")
    expose_info: bool = option(True, "Serve /info.")
    disallowed_sections: tuple[str, ...] = option(
        ("swift.auto_create_account_prefix", "swift.valid_api_versions"), "Parts left out of /info."
    )
    admin_key: str = option("", "Key of signed /info requests; empty refuses them.")
    cors_allow_origin: tuple[str, ...] = option((), "Origins allowed besides the container's.")
    cors_expose_headers: tuple[str, ...] = option((), "Headers exposed besides the container's.")
    strict_cors_mode: bool = option(True, "Add CORS headers only for allowed origins.")
    write_legacy_ec_crc: bool | None = option(
        None,
        "Let erasure coded fragments be read by liberasurecode before 1.6.0; unset leaves the environment.",
        kind=MAYBE,
    )
    expiring_objects_container_divisor: int = option(
        86400, "Seconds of expiry that share a queue container.", kind=integer(1)
    )
