"""The object replicator: syncs the nodes of replicated policies and reverts handoffs."""
