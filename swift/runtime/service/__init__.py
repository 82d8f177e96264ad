"""Servers and daemons as processes: how they start, listen, reload and stop, and how operators reach them."""
