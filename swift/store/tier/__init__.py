"""The cache tier: what of a node's objects is kept on an SSD so that disks need not seek (decision 0015)."""
