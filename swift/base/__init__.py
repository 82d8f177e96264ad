"""Values that all packages share: pure and immutable, without I/O."""
