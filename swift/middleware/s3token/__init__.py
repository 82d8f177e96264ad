"""s3token: has an identity service check the signatures of S3 requests (spec: middleware.md §18)."""

from swift.middleware.s3token.filter import filter_factory

__all__ = ["filter_factory"]
