"""keystoneauth: what the users of an identity service may do (spec: middleware.md §2)."""

from swift.middleware.keystoneauth.filter import filter_factory

__all__ = ["filter_factory"]
