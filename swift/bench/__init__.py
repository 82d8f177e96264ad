"""Workloads and comparisons with the peer."""
