"""versioned_writes: former versions of a container's objects (spec: middleware.md §9)."""
