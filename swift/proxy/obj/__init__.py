"""Objects at the proxy: reading, writing, and what object servers must tell containers."""
