"""Clients of others against a cluster of ours: ``python -m test.clients --help``."""
