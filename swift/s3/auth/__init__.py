"""Signatures, and the session of the caller (spec: middleware.md §22.1)."""
