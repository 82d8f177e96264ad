"""Operation of a cluster: its health, its recon data, and where things are stored."""
