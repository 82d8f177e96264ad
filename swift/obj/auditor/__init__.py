"""The object auditor: reads every object periodically and quarantines damaged ones."""
