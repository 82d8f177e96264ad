"""What the object replicator and the reconstructor share: what is compared with whom, and how."""
