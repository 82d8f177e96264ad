"""Bucket configurations: one table, one codec, and a module for each complex configuration."""
