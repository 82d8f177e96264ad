"""Erasure coded objects at the proxy."""
