"""SSYNC: objects pushed from node to node over one conversation (spec: replication.md §3)."""
