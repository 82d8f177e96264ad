"""The deployment of a cluster of several hosts from one inventory: rings, configuration and units."""
