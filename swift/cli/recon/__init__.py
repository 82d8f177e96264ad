"""swift-recon: what the servers of a cluster tell about themselves."""
