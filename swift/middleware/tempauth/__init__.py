"""tempauth: users in the configuration file, tokens in memcached (spec: middleware.md §1)."""

from swift.middleware.tempauth.filter import filter_factory

__all__ = ["filter_factory"]
