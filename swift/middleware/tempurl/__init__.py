"""Temporary URLs: signed links to objects for people without a token (spec: middleware.md §3)."""

from swift.middleware.tempurl.filter import filter_factory

__all__ = ["filter_factory"]
