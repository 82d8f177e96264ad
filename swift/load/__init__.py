"""``swift-load``: workloads against any Swift or S3 endpoint, and what they measured."""
