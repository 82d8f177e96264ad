"""The part of the S3 API that authorization, configurations and operations share."""
