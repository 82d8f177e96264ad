"""Many objects with one request: archives extracted, lists deleted (spec: middleware.md §7)."""
