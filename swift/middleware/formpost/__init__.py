"""Uploads from HTML forms that were signed for their users (spec: middleware.md §4)."""
