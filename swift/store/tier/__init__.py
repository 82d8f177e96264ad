"""The cache tier: metadata and bodies cached on an SSD to avoid disk seeks (decision 0015)."""
