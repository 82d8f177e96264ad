"""The object replicator: what nodes of a replicated policy have becomes equal, handoffs go home."""
