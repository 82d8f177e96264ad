"""s3token: S3 signatures that an identity service validates (spec: middleware.md §18)."""
