"""Reading objects: replicas, several nodes at once, fragment archives."""
