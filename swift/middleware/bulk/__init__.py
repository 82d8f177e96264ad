"""Many objects with one request: archives extracted, lists deleted (spec: middleware.md §7)."""

from swift.middleware.bulk.filter import filter_factory

__all__ = ["filter_factory"]
