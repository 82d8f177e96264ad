"""The object server and its daemons."""
