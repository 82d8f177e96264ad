"""``/recon/*``: statistics of a storage node for operators (spec: middleware.md §16)."""
