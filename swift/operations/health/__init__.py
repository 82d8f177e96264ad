"""``swift-health``: the state of a cluster in one table."""
