"""formpost: uploads by signed HTML forms (spec: middleware.md §4)."""
