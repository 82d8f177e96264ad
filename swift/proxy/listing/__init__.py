"""Listings of containers: the plan, the sources of rows, their merger, and the response."""
