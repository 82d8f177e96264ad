"""Refuses early what capacity cannot carry, and keeps what was promised (doc/admission.md)."""

from swift.middleware.admission.filter import filter_factory

__all__ = ["filter_factory"]
