"""Temporary URLs: signed links to objects for people without a token (spec: middleware.md §3)."""
