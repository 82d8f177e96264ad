"""Comparison of partitions with remote nodes, shared by object replicator and reconstructor."""
