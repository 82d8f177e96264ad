"""Refuses early what capacity cannot carry, and keeps what was promised (doc/explanation/admission.md)."""
