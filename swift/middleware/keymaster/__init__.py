"""Keymasters: root secrets from the configuration, Barbican, KMIP or Vault (spec: middleware.md §17)."""
