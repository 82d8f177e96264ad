"""Filters of the proxy and storage pipelines."""
