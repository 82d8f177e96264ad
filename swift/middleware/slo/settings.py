"""Options of the filter (spec: middleware.md §5)."""

from __future__ import annotations

from dataclasses import dataclass

from swift.config.kinds import COUNT, SECONDS, integer
from swift.config.schema import option
from swift.middleware.segments import SegmentSettings


@dataclass(frozen=True)
class SloSettings(SegmentSettings):
    """``[filter:slo]``."""

    max_manifest_segments: int = option(1000, "Segments of a manifest that are objects.", kind=integer(1))
    max_manifest_size: int = option(8388608, "Bytes of a manifest that is uploaded.", kind=integer(1))
    rate_limit_under_size: int = option(
        1048576, "Segments of fewer bytes are held back by the rate limit.", kind=COUNT
    )
    concurrency: int = option(2, "Segments to check at the same time during an upload.", kind=integer(1))
    delete_concurrency: int = option(
        0, "Segments deleted at the same time; 0 stands for concurrency.", kind=COUNT, sample="2"
    )
    yield_frequency: float = option(10.0, "Seconds between signs of life.", kind=SECONDS)
    hidden_segments: bool = option(
        False, "Let clients upload parts that belong to one object and go with it (ours)."
    )
    unfinished_upload_seconds: int = option(
        604800, "Seconds after which the parts of an unfinished upload are deleted.", kind=integer(1)
    )
    allow_async_delete: bool = option(True, "Let clients leave the segments to the object expirer.")
