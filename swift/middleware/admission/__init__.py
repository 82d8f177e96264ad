"""Rejects requests beyond the capacity early and enforces guarantees (doc/explanation/admission.md)."""
