"""Options of the filter (spec: middleware.md §19)."""

from __future__ import annotations

from dataclasses import dataclass

from swift.config.kinds import COUNT, integer
from swift.config.schema import Settings, option


@dataclass(frozen=True)
class S3Settings(Settings):
    """``[filter:s3api]``."""

    location: str = option("us-east-1", "The region that clients sign for.")
    storage_domain: tuple[str, ...] = option(
        (), "Domains below which the first label of a host name may be the bucket."
    )
    anonymous_account: str = option(
        "", "The account whose buckets requests without a signature mean; none without it."
    )
    website_domain: tuple[str, ...] = option(
        (), "Domains of web sites: a host name below one names a bucket of anonymous_account."
    )
    dns_compliant_bucket_names: bool = option(True, "Allow only bucket names that a host name can hold.")
    max_bucket_listing: int = option(1000, "Objects, versions and uploads of one listing.", kind=integer(1))
    max_parts_listing: int = option(1000, "Parts of one listing.", kind=integer(1))
    max_upload_part_num: int = option(
        1000, "The highest part number; slo's max_manifest_segments must allow it.", kind=integer(1)
    )
    max_multi_delete_objects: int = option(1000, "Objects of one DeleteObjects.", kind=integer(1))
    multi_delete_concurrency: int = option(2, "Of those, deleted at the same time.", kind=integer(1))
    min_segment_size: int = option(5242880, "Bytes that all parts but the last must have.", kind=COUNT)
    allowable_clock_skew: int = option(900, "Seconds that a client's clock may differ.", kind=COUNT)
    storage_classes: tuple[str, ...] = option(
        (), "Storage classes and their policies, as STANDARD:gold, STANDARD_IA:ec; several may have one."
    )
    lifecycle_debug_interval: int = option(
        0,
        "Seconds that the days of lifecycle rules have, for tests of clients; 0: days. The same as in "
        "s3-lifecycle.conf.",
        kind=COUNT,
    )
    accept_aes256: bool = option(
        False,
        "Answer requests for AES256 (SSE-S3) as if a filter encrypted: for devices that are encrypted below "
        "Swift, and for trials.",
    )
    s3_acl: bool = option(False, "Store ACLs as S3 does, and authorize by them alone.")
    allow_no_owner: bool = option(
        False, "With s3_acl: allow every user access to buckets and objects without an owner."
    )
    check_bucket_owner: bool = option(False, "With s3_acl, list only buckets that the caller owns.")
    allow_multipart_uploads: bool = option(True, "Offer multipart uploads; they need slo.")
    auth_pipeline_check: bool = option(True, "Refuse to start when no filter could check signatures.")
    force_swift_request_proxy_log: bool = option(
        False, "Log also the Swift requests that an S3 request causes."
    )
    ratelimit_as_client_error: bool = option(
        False, "Respond 429 instead of 503 to clients that exceed a rate limit."
    )
    cors_preflight_allow_origin: tuple[str, ...] = option(
        (), "Origins whose preflight requests are allowed; * alone stands for all."
    )
    log_delivery_seconds: int = option(
        300, "Seconds after which the lines of a bucket's access log are stored.", kind=integer(1)
    )
    notification_targets: tuple[str, ...] = option(
        (), "Names of webhooks to which buckets may send events; the s3-notifier has their URLs."
    )
    keep_alive_seconds: int = option(
        10, "Seconds without a response after which spaces are sent to keep a connection.", kind=integer(1)
    )
