"""The proof: see README, "Run the tests"."""
