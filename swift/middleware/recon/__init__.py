"""``/recon/*``: what a storage node tells its operators (spec: middleware.md §16)."""

from swift.middleware.recon.filter import filter_factory

__all__ = ["filter_factory"]
