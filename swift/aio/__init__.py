"""``swift-aio``: a whole cluster on one machine."""
