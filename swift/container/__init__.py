"""The container server and its daemons."""
