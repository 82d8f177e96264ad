"""Pages for users: log-in, buckets, objects, keys, usage."""
