"""Committing writes: two phases, conditions, and agreement between nodes."""
