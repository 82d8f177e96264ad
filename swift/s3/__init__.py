"""s3api: the S3 API in front of Swift's (spec: middleware.md §19–22)."""

from swift.s3.filter import filter_factory

__all__ = ["filter_factory"]
