"""slo: large objects whose manifest names their segments (spec: middleware.md §5)."""
