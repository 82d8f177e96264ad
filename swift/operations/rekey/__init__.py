"""Root secrets of encryption: which objects use which one, and another one for stored objects."""
