"""The account server and its daemons."""
