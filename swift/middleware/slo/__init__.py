"""slo: static large objects (spec: middleware.md §5)."""
