"""swiftauth: users, keys and roles of the cluster itself, kept in it (doc/howto/users.md)."""
