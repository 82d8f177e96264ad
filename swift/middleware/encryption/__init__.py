"""encryption: objects, their metadata and ETags are stored encrypted (spec: middleware.md §17)."""

from swift.middleware.encryption.filter import filter_factory

__all__ = ["filter_factory"]
