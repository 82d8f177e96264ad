"""versioned_writes: former objects of a container are kept in another one (spec: middleware.md §9.1)."""
