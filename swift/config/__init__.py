"""Options declared once, and the files they are read from."""
