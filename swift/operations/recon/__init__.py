"""``swift-recon``: checks over the recon data that servers answer with."""
