"""Accounts and containers that are used only so often (spec: middleware.md §13)."""
