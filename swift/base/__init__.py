"""Nouns that everybody shares: pure, immutable values without I/O."""
