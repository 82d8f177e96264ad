"""The packed engine: small objects in append-only volumes, found by an index (doc/formats/packed.md)."""
