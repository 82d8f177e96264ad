"""tempauth: users in the configuration file, tokens in memcached (spec: middleware.md §1)."""
