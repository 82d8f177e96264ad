"""encryption: objects, their metadata and ETags are stored encrypted (spec: middleware.md §17)."""
