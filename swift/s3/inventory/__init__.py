"""Inventories of buckets: what they are to say, and the files that say it."""
