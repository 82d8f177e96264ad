"""Containers as web sites: indexes, listings for people, error pages (spec: middleware.md §11)."""

from swift.middleware.staticweb.filter import filter_factory

__all__ = ["filter_factory"]
