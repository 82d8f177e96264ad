"""Erasure codes."""
