"""Uploads from HTML forms that were signed for their users (spec: middleware.md §4)."""

from swift.middleware.formpost.filter import filter_factory

__all__ = ["filter_factory"]
