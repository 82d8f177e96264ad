"""Published studies of storage systems, simulated beside their figures."""
