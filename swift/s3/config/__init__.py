"""Bucket configurations: one table, one codec, and a file for each that does more than being stored."""
