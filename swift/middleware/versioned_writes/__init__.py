"""versioned_writes: former objects of a container are kept in another one (spec: middleware.md §9.1)."""

from swift.middleware.versioned_writes.filter import filter_factory

__all__ = ["filter_factory"]
