"""swift-health: one screen for a cluster, from its rings and what its servers tell."""
