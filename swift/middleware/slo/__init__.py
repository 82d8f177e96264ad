"""slo: large objects whose manifest names their segments (spec: middleware.md §5)."""

from swift.middleware.slo.filter import filter_factory

__all__ = ["filter_factory"]
