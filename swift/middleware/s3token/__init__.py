"""s3token: has an identity service check the signatures of S3 requests (spec: middleware.md §18)."""
