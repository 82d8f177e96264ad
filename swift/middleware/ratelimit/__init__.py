"""Accounts and containers that are used only so often (spec: middleware.md §13)."""

from swift.middleware.ratelimit.filter import filter_factory

__all__ = ["filter_factory"]
