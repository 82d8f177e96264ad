"""The S3 API in front of Swift's (spec: middleware.md §19–22)."""
