"""``/recon/*``: what a storage node tells its operators (spec: middleware.md §16)."""
