"""The object auditor: every object is looked at again and again, and what is damaged is quarantined."""
