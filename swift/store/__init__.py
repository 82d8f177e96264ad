"""The object engine behind one interface."""
