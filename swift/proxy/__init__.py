"""The proxy server."""
