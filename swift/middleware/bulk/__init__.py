"""Bulk operations: extraction of archives and deletion of lists (spec: middleware.md §7)."""
