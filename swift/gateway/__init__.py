"""Joints between middleware and the proxy: sub-requests and cached account and container facts."""
