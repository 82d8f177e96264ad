"""Comparisons with the peer, and measurements of single parts, in one run each."""
