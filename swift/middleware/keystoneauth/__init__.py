"""keystoneauth: authorization of users of an identity service (spec: middleware.md §2)."""
