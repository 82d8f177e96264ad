"""Container sync: what is in a container is copied to a container of another cluster."""
