"""keystoneauth: what the users of an identity service may do (spec: middleware.md §2)."""
