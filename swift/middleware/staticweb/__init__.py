"""Containers as web sites: indexes, listings for people, error pages (spec: middleware.md §11)."""
