"""``swift-load fail``: what a cluster does while a share of it has failed, and how it comes back."""
