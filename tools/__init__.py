"""Programs of developers, run in a checkout by ``python -m tools...``; not part of the distribution."""
