"""The cluster's size limits, ``[swift-constraints]`` of swift.conf (spec: ring.md §2, public-api.md §4)."""

from __future__ import annotations

from dataclasses import dataclass

#: Headers a request carries besides metadata; part of the header count limit.
DEFAULT_HEADER_COUNT = 36


@dataclass(frozen=True, slots=True)
class Limits:
    """Every limit by its option name; sizes in bytes, name lengths in characters."""

    max_file_size: int = 5368709122
    max_meta_name_length: int = 128
    max_meta_value_length: int = 256
    max_meta_count: int = 90
    max_meta_overall_size: int = 4096
    max_header_size: int = 8192
    max_request_line: int = 8192
    max_object_name_length: int = 1024
    container_listing_limit: int = 10000
    account_listing_limit: int = 10000
    max_account_name_length: int = 256
    max_container_name_length: int = 256
    extra_header_count: int = 0
    valid_api_versions: tuple[str, ...] = ("v1", "v1.0")
    auto_create_account_prefix: str = "."

    @property
    def max_header_count(self) -> int:
        """Maximum number of headers of a request: 126 by default."""
        return DEFAULT_HEADER_COUNT + self.max_meta_count + self.extra_header_count
