"""``swift-load fail``: the behaviour of a cluster while a share of it has failed, and its recovery."""
