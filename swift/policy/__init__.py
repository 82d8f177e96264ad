"""Storage policies."""
