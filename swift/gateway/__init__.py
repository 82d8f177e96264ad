"""Shared parts of middleware and proxy: sub-requests and cached account and container info."""
