"""Sessions, the APIs, templates and routes, which all pages use."""
