"""Keymasters: root secrets from the configuration, Barbican or a KMIP service (spec: middleware.md §17)."""
